/** System calls that a sandbox must not use, with their number on each architecture (arch/x86/entry/syscalls, asm-generic/unistd.h). */

const errors = { notPermitted: 1, notImplemented: 38 } as const;

/** The numbers of a system call on each architecture; null if the architecture does not have the call. */
type Numbers = readonly [x64: number | null, arm64: number | null, i386: number | null];

/** A system call of Linux 5.1 or later, which has the same number on all architectures. */
const everywhere = (number: number): Numbers => [number, number, number];

/**
 * These calls fail with the error "not implemented", because programs then use another call. After the error "not permitted", programs
 * would give up.
 */
const notImplemented: Readonly<Record<string, Numbers>> = {
  // io_uring had most of the kernel's security faults that programs without special rights can use. libuv, Java and databases work
  // without io_uring.
  io_uring_setup: everywhere(425),
  io_uring_enter: everywhere(426),
  io_uring_register: everywhere(427),
  // These calls access the memory of other processes. strace and gdb can use ptrace instead. The kernel refuses ptrace on the agent,
  // because the agent is not dumpable.
  process_vm_readv: [310, 270, 347],
  process_vm_writev: [311, 271, 348],
  // socketcall can make every socket call, and a filter cannot see which socket family it uses.
  socketcall: [null, null, 102],
};

const notPermitted: Readonly<Record<string, Numbers>> = {
  // These calls run programs in the kernel, trace the kernel, or handle page faults for the kernel.
  bpf: [321, 280, 357],
  perf_event_open: [298, 241, 336],
  userfaultfd: [323, 282, 374],
  lookup_dcookie: [212, 18, 253],
  // These calls use keys of the kernel, which no namespace separates.
  add_key: [248, 217, 286],
  request_key: [249, 218, 287],
  keyctl: [250, 219, 288],
  // These calls start another kernel, load modules, read the kernel's log, or access ports of the machine.
  kexec_load: [246, 104, 283],
  kexec_file_load: [320, 294, null],
  create_module: [174, null, 127],
  init_module: [175, 105, 128],
  finit_module: [313, 273, 350],
  delete_module: [176, 106, 129],
  get_kernel_syms: [177, null, 130],
  query_module: [178, null, 167],
  syslog: [103, 116, 103],
  reboot: [169, 142, 88],
  iopl: [172, null, 110],
  ioperm: [173, null, 101],
  vm86: [null, null, 166],
  vm86old: [null, null, 113],
  // These calls change mounts.
  mount: [165, 40, 21],
  umount: [null, null, 22],
  umount2: [166, 39, 52],
  pivot_root: [155, 41, 217],
  open_tree: everywhere(428),
  move_mount: everywhere(429),
  fsopen: everywhere(430),
  fsconfig: everywhere(431),
  fsmount: everywhere(432),
  fspick: everywhere(433),
  mount_setattr: everywhere(442),
  open_tree_attr: everywhere(467),
  // These calls enter namespaces, open files by handle, or use descriptors and pages of other processes.
  setns: [308, 268, 346],
  open_by_handle_at: [304, 265, 342],
  fanotify_init: [300, 262, 338],
  pidfd_getfd: everywhere(438),
  kcmp: [312, 272, 349],
  migrate_pages: [256, 238, 294],
  move_pages: [279, 239, 317],
  // These calls change settings of the machine.
  acct: [163, 89, 51],
  quotactl: [179, 60, 131],
  quotactl_fd: everywhere(443),
  nfsservctl: [180, 42, 169],
  swapon: [167, 224, 87],
  swapoff: [168, 225, 115],
  settimeofday: [164, 170, 79],
  stime: [null, null, 25],
  clock_settime: [227, 112, 264],
  clock_settime64: [null, null, 404],
};

/** The numbers that programs of one kind use. */
export interface CallTable {
  /** AUDIT_ARCH_… of linux/audit.h. */
  readonly auditArch: number;
  /** The refused calls: number of the call → number of the error. */
  readonly refused: ReadonlyMap<number, number>;
  /** Numbers of the calls that make a socket. The first argument of such a call is the family of the socket. */
  readonly sockets: readonly number[];
}

function tableOf(auditArch: number, column: 0 | 1 | 2, sockets: readonly number[]): CallTable {
  const refused = new Map<number, number>();
  const add = (calls: Readonly<Record<string, Numbers>>, error: number) => {
    for (const numbers of Object.values(calls)) {
      const number = numbers[column];
      if (number !== null) refused.set(number, error);
    }
  };
  add(notImplemented, errors.notImplemented);
  add(notPermitted, errors.notPermitted);
  return { auditArch, refused, sockets };
}

/**
 * For each architecture: one table for each kind of program that the machine runs. On arm64, there is no table for 32-bit programs, so
 * all their calls are refused.
 */
export const tables: Readonly<Partial<Record<NodeJS.Architecture, readonly CallTable[]>>> = {
  x64: [tableOf(0xc000003e, 0, [41, 53]), tableOf(0x40000003, 2, [359, 360])],
  arm64: [tableOf(0xc00000b7, 1, [198, 199])],
};

/**
 * Socket families that a sandbox may use: none, local, IPv4, IPv6, netlink (linux/socket.h). Other families are refused, because some
 * can leave the network namespace, such as the family of virtual machines (vsock), and others use kernel code that few programs need.
 */
export const socketFamilies: readonly number[] = [0, 1, 2, 10, 16];
