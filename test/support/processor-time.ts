import { readFileSync } from 'node:fs';

/** User and system processor time in milliseconds: of this process, and of all its descendants that have ended. */
export interface ProcessorTime {
  readonly ownMs: number;
  readonly childrenMs: number;
}

/**
 * Reads the processor time of this process and its ended children: the fields utime to cstime of proc(5), in hundredths of a second.
 * Does not count processes that outlive their parent.
 */
export function readProcessorTime(): ProcessorTime {
  const fields = readFileSync('/proc/self/stat', 'utf8').split(') ').at(-1)?.split(' ') ?? [];
  const [user, system, childrenUser, childrenSystem] = fields.slice(11, 15).map((count) => Number(count) * 10);
  return {
    ownMs: (user ?? 0) + (system ?? 0),
    childrenMs: (childrenUser ?? 0) + (childrenSystem ?? 0),
  };
}
