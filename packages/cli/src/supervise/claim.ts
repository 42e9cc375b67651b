import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { identify, isAlive, type ProcessIdentity } from './processes.ts';

const Claim = z.object({
  pid: z.int().positive(),
  start_ticks: z.number().nullable(),
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

/** The claim in this file whose process lives, `null` where there is none. */
export function readClaim(file: string): Claim | null {
  const claim = readAny(file);
  return claim && isAlive(claim) ? claim : null;
}

function readAny(file: string): Claim | null {
  try {
    const parsed = Claim.safeParse(JSON.parse(readFileSync(file, 'utf8')));
    return parsed.success ? parsed.data : null;
  } catch {
    return null;
  }
}

/**
 * Makes this process the supervisor. One of several that try at once gets it, because link(2) fails where the file exists;
 * a claim of a dead process is moved out of the way first.
 * @returns the claim, or the living one of another process.
 */
export function takeClaim(
  file: string,
  mode: Claim['mode'],
): { ok: true; claim: HeldClaim } | { ok: false; holder: Claim } {
  const self: ProcessIdentity = identify(process.pid);
  const claim: Claim = { ...self, mode, started_at: new Date().toISOString() };
  mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
  const own = `${file}.${process.pid}`;
  writeFileSync(own, `${JSON.stringify(claim)}\n`, { mode: 0o600 });
  try {
    for (;;) {
      try {
        linkSync(own, file);
        return {
          ok: true,
          claim: {
            announce(origin, programs) {
              writeFileSync(own, `${JSON.stringify({ ...claim, origin, programs })}\n`, { mode: 0o600 });
              renameSync(own, file);
            },
            release: () => rmSync(file, { force: true }),
          },
        };
      } catch (error) {
        if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
      }
      const holder = readClaim(file);
      if (holder) return { ok: false, holder };
      moveStaleAway(file);
    }
  } finally {
    rmSync(own, { force: true });
  }
}

/** Between looking and moving, another process may have replaced the stale claim by its own: that one is put back. */
function moveStaleAway(file: string): void {
  const aside = `${file}.stale-${process.pid}`;
  try {
    renameSync(file, aside);
  } catch {
    return;
  }
  if (readClaim(aside)) {
    try {
      linkSync(aside, file);
    } catch {
      // A third process has claimed it meanwhile; the next look finds out who.
    }
  }
  rmSync(aside, { force: true });
}
