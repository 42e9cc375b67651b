import { createHash } from 'node:crypto';
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

/** True where this call made the second name; false where there is one already. */
function linked(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false;
    throw error;
  }
}

/**
 * Makes this process the supervisor. One of several that try at once gets it, because link(2) fails where the file exists,
 * and because one alone may replace the claim of a dead process (`replaceStale`).
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
  const held: HeldClaim = {
    announce(origin, programs) {
      writeFileSync(own, `${JSON.stringify({ ...claim, origin, programs })}\n`, { mode: 0o600 });
      renameSync(own, file);
    },
    release: () => rmSync(file, { force: true }),
  };
  try {
    for (;;) {
      if (linked(own, file)) return { ok: true, claim: held };
      const found = readText(file);
      if (found === null) continue;
      const holder = parse(found);
      if (holder && isAlive(holder)) return { ok: false, holder };
      if (replaceStale(file, found, own)) return { ok: true, claim: held };
    }
  } finally {
    rmSync(own, { force: true });
  }
}

/**
 * Puts our claim in the place of exactly this stale one. Whoever wants to needs the permit, a link named after the stale
 * text: while one holds it, nobody else replaces that text, so what is read under the permit stays until it is replaced.
 * @returns false where another was faster: look again.
 */
function replaceStale(file: string, stale: string, own: string): boolean {
  const permit = `${file}.permit-${createHash('sha256').update(stale).digest('hex').slice(0, 16)}`;
  if (!linked(own, permit)) {
    const other = readAny(permit);
    // It died between two lines of this function.
    if (other && !isAlive(other)) rmSync(permit, { force: true });
    else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
    return false;
  }
  try {
    if (readText(file) !== stale) return false;
    const next = `${own}.next`;
    linkSync(own, next);
    renameSync(next, file);
    return true;
  } finally {
    rmSync(permit, { force: true });
  }
}
