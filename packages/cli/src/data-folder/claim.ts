import { mkdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { readHolder, tryClaim } from '@runyard/system/claim';
import { tryLockFile } from '@runyard/system/file-lock';
import { isIdentity, type ProcessIdentity, stateOf, thisProcess } from '@runyard/system/process-identity';

/** The description of the process that supervises a data folder, and which has the claim on the folder. */
export interface Claim extends ProcessIdentity {
  readonly mode: 'foreground' | 'background';
  readonly started_at: string;
  /** Origin with which programs on this machine reach the service. Absent until all programs have started. */
  readonly origin?: string;
  /** Names of the programs that the supervisor keeps running. */
  readonly programs?: readonly string[];
}

/** Checks the content of the file by hand, because nearly every command reads the file, and loading zod takes long. */
function isClaim(value: unknown): value is Claim {
  if (!isIdentity(value)) return false;
  const { mode, started_at, origin, programs }: Partial<Record<keyof Claim, unknown>> = value;
  const areTexts = Array.isArray(programs) && programs.every((program) => typeof program === 'string');
  return (
    (mode === 'foreground' || mode === 'background') &&
    typeof started_at === 'string' &&
    (origin === undefined || typeof origin === 'string') &&
    (programs === undefined || areTexts)
  );
}

/** When a supervisor gets this signal, the worker that it supervises finishes all runs, and then all programs stop. */
export const drainSignal = 'SIGUSR2';

/** A claim of this process. */
export interface SupervisorClaim {
  /** Writes into the file, for other processes, that all programs have started, and the origin of the service. */
  announce(origin: string, programs: readonly string[]): void;
  release(): void;
}

/** Returns the claim in this file if its process still runs, here or in another container. Otherwise returns `null`. */
export function readClaim(file: string): Claim | null {
  const claim = readHolder(file, isClaim);
  if (claim === undefined) return null;
  switch (stateOf(claim)) {
    case 'alive':
      return claim;
    case 'gone':
      return null;
    case 'elsewhere':
      return isLocked(file) ? claim : null;
  }
}

/**
 * Makes this process the supervisor. If several processes try this at the same time, the lock `{file}.lock` decides which of them gets
 * the claim. The file itself only describes the holder. @returns the new claim, or the claim of another process
 */
export function takeClaim(
  file: string,
  mode: Claim['mode'],
): { ok: true; claim: SupervisorClaim } | { ok: false; holder: Claim } {
  mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
  const claim: Claim = { ...thisProcess(), mode, started_at: new Date().toISOString() };
  for (;;) {
    const ownClaim = tryClaim({ lock: lockFileOf(file), holder: file }, claim);
    if (ownClaim !== undefined) {
      return {
        ok: true,
        claim: {
          announce: (origin, programs) => ownClaim.describe({ ...claim, origin, programs: [...programs] }),
          release() {
            rmSync(file, { force: true });
            ownClaim.release();
          },
        },
      };
    }
    const holder = readHolder(file, isClaim);
    if (holder !== undefined && stateOf(holder) !== 'gone') return { ok: false, holder };
    // Tries again, because there are two possible reasons. Another process may have just taken the lock and not written the file yet. Or
    // another process only tests the lock in `isLocked`.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
  }
}

const lockFileOf = (file: string): string => `${file}.lock`;

function isLocked(file: string): boolean {
  const lock = tryLockFile(lockFileOf(file));
  lock?.release();
  return lock === undefined;
}
