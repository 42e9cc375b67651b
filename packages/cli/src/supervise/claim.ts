import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { tryLockFile } from '@runyard/contract/file-lock';
import { z } from 'zod';
import { identify, isAlive, isElsewhere } from './processes.ts';

const Claim = z.object({
  pid: z.int().positive(),
  start_ticks: z.number().nullable(),
  pid_namespace: z.string().optional(),
  mode: z.enum(['foreground', 'background']),
  started_at: z.string(),
  /** Where its service is reached from this machine; absent until everything is started. */
  origin: z.string().optional(),
  /** What it keeps running. */
  programs: z.array(z.string()).optional(),
});
/** Who supervises the programs of a data folder. */
export type Claim = z.infer<typeof Claim>;

/** What its holder can do with a claim. */
export interface HeldClaim {
  /** Tells the others that everything is started, and where. */
  announce(origin: string, programs: readonly string[]): void;
  release(): void;
}

/** The claim in this file whose process lives, here or in another container; `null` where there is none. */
export function readClaim(file: string): Claim | null {
  const claim = readAny(file);
  return claim && (isAlive(claim) || isHeldElsewhere(file, claim)) ? claim : null;
}

function readAny(file: string): Claim | null {
  const text = readText(file);
  return text === null ? null : parse(text);
}

function readText(file: string): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null;
  }
}

function parse(text: string): Claim | null {
  try {
    const parsed = Claim.safeParse(JSON.parse(text));
    return parsed.success ? parsed.data : null;
  } catch {
    return null;
  }
}

/**
 * Makes this process the supervisor. Of several that try at once one gets it, by a lock of the kernel on `{file}.lock`, which
 * is free as soon as its holder is gone; the file only says who that is.
 * @returns the claim, or that of another process
 */
export function takeClaim(
  file: string,
  mode: Claim['mode'],
): { ok: true; claim: HeldClaim } | { ok: false; holder: Claim } {
  mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
  const claim: Claim = { ...identify(process.pid), mode, started_at: new Date().toISOString() };
  for (;;) {
    const lock = tryLockFile(lockFileOf(file));
    if (lock === undefined) {
      const holder = readAny(file);
      if (holder !== null && (isElsewhere(holder) || isAlive(holder))) return { ok: false, holder };
      // It has just got the lock, or only looks at it.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
      continue;
    }
    const write = (content: Claim): void => {
      writeFileSync(`${file}.${process.pid}`, `${JSON.stringify(content)}\n`, { mode: 0o600 });
      renameSync(`${file}.${process.pid}`, file);
    };
    write(claim);
    return {
      ok: true,
      claim: {
        announce: (origin, programs) => write({ ...claim, origin, programs: [...programs] }),
        release() {
          rmSync(file, { force: true });
          lock.release();
        },
      },
    };
  }
}

const lockFileOf = (file: string): string => `${file}.lock`;

/** True while a supervisor in another container holds the claim. */
function isHeldElsewhere(file: string, claim: Claim): boolean {
  if (!isElsewhere(claim)) return false;
  const lock = tryLockFile(lockFileOf(file));
  lock?.release();
  return lock === undefined;
}
