import { readFileSync } from 'node:fs';

/** `own`: of this process; `children`: of all of its ended children, and of theirs. Both user and system, in milliseconds. */
export interface ProcessorTime {
  readonly ownMs: number;
  readonly childrenMs: number;
}

/**
 * Reads the processor time that this process and its ended children took: utime to cstime of proc(5), which count in hundredths of a
 * second. Processes that outlive their parent are left out.
 */
export function readProcessorTime(): ProcessorTime {
  const fields = readFileSync('/proc/self/stat', 'utf8').split(') ').at(-1)?.split(' ') ?? [];
  const [user, system, childrenUser, childrenSystem] = fields.slice(11, 15).map((count) => Number(count) * 10);
  return {
    ownMs: (user ?? 0) + (system ?? 0),
    childrenMs: (childrenUser ?? 0) + (childrenSystem ?? 0),
  };
}
