import { type CallTable, socketFamilies, tables } from './calls.ts';

/** Codes of instructions (linux/bpf_common.h): load a word, return, jump if equal, jump if greater or equal. */
const load = 0x20;
const ret = 0x06;
const jumpIfEqual = 0x15;
const jumpIfAtLeast = 0x35;
/** Offsets in `struct seccomp_data` (linux/seccomp.h): number of the call, architecture, low half of the first argument. */
const callNumber = 0;
const architecture = 4;
const firstArgument = 16;
const allow = 0x7fff0000;
const refuse = (error: number): number => 0x00050000 | error;
const notImplemented = 38;
const familyNotSupported = 97;
/** On x64, there is a third kind of program, x32, whose call numbers have this bit. */
const x32Bit = 0x40000000;

/** `[code, jump if true, jump if false, value]`; a jump counts the instructions that it skips. */
type Instruction = readonly [code: number, ifTrue: number, ifFalse: number, value: number];

const returns = (value: number): Instruction => [ret, 0, 0, value];

/** Returns the instructions for one kind of program. The last instruction returns the decision. */
function checksOf({ refused, sockets }: CallTable): Instruction[] {
  const families: Instruction[] = [
    [load, 0, 0, firstArgument],
    ...socketFamilies.map((family, index): Instruction => [jumpIfEqual, socketFamilies.length - index, 0, family]),
    returns(refuse(familyNotSupported)),
  ];
  return [
    [load, 0, 0, callNumber],
    [jumpIfAtLeast, 0, 1, x32Bit],
    returns(refuse(notImplemented)),
    ...[...refused].flatMap(([number, error]): Instruction[] => [[jumpIfEqual, 0, 1, number], returns(refuse(error))]),
    ...sockets.map(
      (number, index): Instruction => [
        jumpIfEqual,
        sockets.length - 1 - index,
        index === sockets.length - 1 ? families.length : 0,
        number,
      ],
    ),
    ...families,
    returns(allow),
  ];
}

/**
 * Returns a program for the kernel's filter of system calls (seccomp(2)). The program refuses the calls in `calls.ts` with an error and
 * allows all other calls. Calls that the program always allows cost no time, because the kernel does not run the program for these calls.
 * Returns undefined if the numbers of the calls are unknown on this architecture.
 */
export function seccompFilter(arch: NodeJS.Architecture = process.arch): Buffer | undefined {
  const kinds = tables[arch];
  if (kinds === undefined) return undefined;
  const instructions: Instruction[] = [
    [load, 0, 0, architecture],
    ...kinds.flatMap((table): Instruction[] => {
      const checks = checksOf(table);
      return [[jumpIfEqual, 0, checks.length, table.auditArch], ...checks];
    }),
    returns(refuse(notImplemented)),
  ];
  const program = Buffer.alloc(8 * instructions.length);
  for (const [index, [code, ifTrue, ifFalse, value]] of instructions.entries()) {
    const at = 8 * index;
    program.writeUInt16LE(code, at);
    program.writeUInt8(ifTrue, at + 2);
    program.writeUInt8(ifFalse, at + 3);
    program.writeUInt32LE(value, at + 4);
  }
  return program;
}
