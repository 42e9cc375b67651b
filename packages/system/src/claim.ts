/**
 * A claim on a folder, which only one process can hold. A claim consists of a kernel lock and of a file that describes the holder. The
 * kernel releases the lock as soon as the holder has ended. This module does not load zod.
 */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { tryLockFile } from './file-lock.ts';

export interface ClaimFiles {
  /** Path of the file that is locked. The file is never removed. */
  readonly lock: string;
  /** File with JSON about the holder. The file stays when the claim is released. */
  readonly holder: string;
}

export interface HeldClaim<H> {
  /** Replaces the description of the holder. */
  describe(holder: H): void;
  release(): void;
}

/** Takes the claim and writes the description of the new holder. Returns undefined if another process holds the claim. */
export function tryClaim<H>(files: ClaimFiles, holder: H): HeldClaim<H> | undefined {
  const lock = tryLockFile(files.lock);
  if (lock === undefined) return undefined;
  const describe = (content: H): void => {
    const fresh = `${files.holder}.${process.pid}`;
    writeFileSync(fresh, `${JSON.stringify(content)}\n`, { mode: 0o600 });
    renameSync(fresh, files.holder);
  };
  try {
    describe(holder);
  } catch (error) {
    lock.release();
    throw error;
  }
  return { describe, release: lock.release };
}

/**
 * Reads the description of the present holder or, if the claim is free, of the last holder. Returns undefined if the file is missing or
 * damaged.
 */
export function readHolder<H>(file: string, isHolder: (value: unknown) => value is H): H | undefined {
  try {
    const value: unknown = JSON.parse(readFileSync(file, 'utf8'));
    return isHolder(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
