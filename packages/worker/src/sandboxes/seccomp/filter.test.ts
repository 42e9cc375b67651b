import { expect, test } from 'vitest';
import { tables } from './calls.ts';
import { seccompFilter } from './filter.ts';

const x64 = 0xc000003e;
const i386 = 0x40000003;
const arm64 = 0xc00000b7;

/** Runs the filter program in the same way as the kernel. Returns the number of the error, or 0 if the call is allowed. */
function judge(arch: NodeJS.Architecture, call: { arch: number; number: number; argument?: number }): number {
  const program = seccompFilter(arch) ?? Buffer.alloc(0);
  const data = Buffer.alloc(64);
  data.writeUInt32LE(call.number, 0);
  data.writeUInt32LE(call.arch, 4);
  data.writeUInt32LE(call.argument ?? 0, 16);
  let word = 0;
  for (let at = 0; at < program.length; at += 8) {
    const value = program.readUInt32LE(at + 4);
    const jump = (isTrue: boolean) => 8 * program.readUInt8(at + (isTrue ? 2 : 3));
    switch (program.readUInt16LE(at)) {
      case 0x20:
        word = data.readUInt32LE(value);
        break;
      case 0x15:
        at += jump(word === value);
        break;
      case 0x35:
        at += jump(word >= value);
        break;
      case 0x06:
        return value === 0x7fff0000 ? 0 : value & 0xffff;
      default:
        throw new Error('unknown instruction');
    }
  }
  throw new Error('the program has no end');
}

test.each([
  ['read', 'x64', x64, 0, 0],
  ['io_uring_setup', 'x64', x64, 425, 38],
  ['bpf', 'x64', x64, 321, 1],
  ['keyctl', 'x64', x64, 250, 1],
  ['mount', 'x64', x64, 165, 1],
  ['clone3', 'x64', x64, 435, 0],
  ['ptrace', 'x64', x64, 101, 0],
  ['a call of x32', 'x64', x64, 0x40000000, 38],
  ['read of a 32-bit program', 'x64', i386, 3, 0],
  ['bpf of a 32-bit program', 'x64', i386, 357, 1],
  ['socketcall of a 32-bit program', 'x64', i386, 102, 38],
  ['a call of an unknown architecture', 'x64', arm64, 63, 38],
  ['read', 'arm64', arm64, 63, 0],
  ['bpf', 'arm64', arm64, 280, 1],
  ['io_uring_enter', 'arm64', arm64, 426, 38],
  ['a call of a 32-bit program', 'arm64', 0x40000028, 3, 38],
] as const)('returns the declared verdict for %s on %s', (_, arch, ofCall, number, error) => {
  expect(judge(arch, { arch: ofCall, number })).toBe(error);
});

test.each([
  ['x64', x64, [41, 53]],
  ['x64', i386, [359, 360]],
  ['arm64', arm64, [198, 199]],
] as const)('allows local sockets, IP and netlink on %s, and no others', (arch, ofCall, numbers) => {
  for (const number of numbers) {
    for (const argument of [1, 2, 10, 16]) expect(judge(arch, { arch: ofCall, number, argument })).toBe(0);
    // Families that are refused: keys of IPsec, packets, ciphers, and virtual machines.
    for (const argument of [15, 17, 38, 40]) expect(judge(arch, { arch: ofCall, number, argument })).toBe(97);
  }
});

test('the filter refuses every call of its tables with the right error, and is small enough for the kernel', () => {
  for (const [arch, kinds] of Object.entries(tables)) {
    for (const { auditArch, refused } of kinds)
      for (const [number, error] of refused)
        expect(judge(arch as NodeJS.Architecture, { arch: auditArch, number })).toBe(error);
    expect((seccompFilter(arch as NodeJS.Architecture)?.length ?? 0) / 8).toBeLessThan(4096);
  }
  expect(seccompFilter('riscv64')).toBeUndefined();
});
