/** Faults of a set of definition files. */
import type { FaultCode } from '../fault-codes.ts';

/** A position in a file. Line and column begin with 1. A column counts UTF-16 units. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/** A fault or a notice at a position of a file. */
export interface DefinitionFault extends Position {
  readonly file: string;
  /** A sentence that says how to fix the fault, at most a few hundred characters. */
  readonly message: string;
  /** The known name that the writer probably meant. */
  readonly suggestion?: string;
  /** Kind of the fault; absent: a wrong value, or a notice. */
  readonly code?: FaultCode;
}

export const start: Position = { line: 1, column: 1 };

/** Maximum number of faults that one answer lists. */
export const maxDefinitionFaults = 100;

/** Collects faults up to the maximum number. Further faults are only counted. */
export interface Faults {
  add(file: string, position: Position, message: string, suggestion?: string, code?: FaultCode): void;
  count(): number;
  /** Sorted by file, line and column. */
  list(): DefinitionFault[];
}

export function collectFaults(): Faults {
  const faults: DefinitionFault[] = [];
  let count = 0;
  return {
    add(file, { line, column }, message, suggestion, code) {
      count += 1;
      if (faults.length < maxDefinitionFaults)
        faults.push({
          file,
          line,
          column,
          message,
          ...(suggestion === undefined ? {} : { suggestion }),
          ...(code === undefined ? {} : { code }),
        });
    },
    count: () => count,
    list() {
      const byPlace = (a: DefinitionFault, b: DefinitionFault) =>
        compare(a.file, b.file) || a.line - b.line || a.column - b.column;
      return faults.toSorted(byPlace);
    },
  };
}

/** Compares texts by their UTF-16 units, so that the order is the same on every machine. */
export const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
