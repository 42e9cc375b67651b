/**
 * Reads the commits at the beginning of a pack (https://git-scm.com/docs/pack-format). git writes commits before folders and files
 * (`compute_write_order` of builtin/pack-objects.c), so the commits are known before the pack is forwarded.
 */
import { createHash } from 'node:crypto';
import { inflateSync } from 'node:zlib';

/**
 * Maps the id of each commit to the ids of its parents. An id is the hash of the commit's content, so a pack cannot state wrong parents.
 */
export type Commits = ReadonlyMap<string, readonly string[]>;

/**
 * The commits at the beginning of a pack. `isCut`: the bytes end within these commits, so the rest of the pack may contain further commits.
 */
export interface LeadingCommits {
  readonly commits: Commits;
  readonly isCut: boolean;
}

const maxCommitBytes = 256 * 1024;
const maxCommits = 5_000;
/** Maximum size of all commits together. It is limited because a delta of a few bytes can produce a large commit. */
const maxTotalBytes = 8 * 1024 * 1024;
/**
 * Maximum number of instructions in all deltas together. git needs a few instructions for a commit, but a compressed delta of a few bytes
 * can have a hundred thousand.
 */
const maxInstructions = 100_000;
const types = { commit: 1, ofsDelta: 6, refDelta: 7 } as const;

class Cut extends Error {}

/**
 * Reads the commits at the beginning of a pack. `idLength`: number of hexadecimal digits of an id, 40 or 64. Stops at the first object that
 * is not a commit, and at bytes that do not belong to a pack.
 */
export function readLeadingCommits(pack: Buffer, idLength: number): LeadingCommits {
  const commits = new Map<string, readonly string[]>();
  const contentAt = new Map<number, Buffer>();
  const contentOf = new Map<string, Buffer>();
  const done = (isCut: boolean) => ({ commits, isCut });
  if (pack.length < 12) return done(true);
  if (pack.toString('latin1', 0, 4) !== 'PACK') return done(false);
  const count = Math.min(pack.readUInt32BE(8), maxCommits);
  let at = 12;
  let total = 0;
  const instructions = { left: maxInstructions };
  const byte = (): number => {
    const value = pack[at];
    if (value === undefined) throw new Cut();
    at += 1;
    return value;
  };
  try {
    for (let index = 0; index < count; index += 1) {
      const start = at;
      let part = byte();
      const type = (part >> 4) & 7;
      let size = part & 15;
      for (let shift = 4; part & 0x80; shift += 7) {
        part = byte();
        size += (part & 0x7f) * 2 ** shift;
      }
      let base: Buffer | undefined;
      if (type === types.ofsDelta) {
        part = byte();
        let distance = part & 0x7f;
        while (part & 0x80) {
          part = byte();
          distance = (distance + 1) * 128 + (part & 0x7f);
        }
        base = contentAt.get(start - distance);
      } else if (type === types.refDelta) {
        if (at + idLength / 2 > pack.length) throw new Cut();
        base = contentOf.get(pack.toString('hex', at, at + idLength / 2));
        at += idLength / 2;
      }
      if ((type !== types.commit && base === undefined) || size > maxCommitBytes) return done(false);
      const inflated = inflate(pack.subarray(at), size);
      at += inflated.consumed;
      const content = base === undefined ? inflated.content : applyDelta(base, inflated.content, instructions);
      if (content === undefined) return done(false);
      total += content.length;
      if (total > maxTotalBytes) return done(false);
      contentAt.set(start, content);
      const id = createHash(idLength === 40 ? 'sha1' : 'sha256')
        .update(`commit ${content.length}\0`)
        .update(content)
        .digest('hex');
      contentOf.set(id, content);
      commits.set(id, parentsOf(content));
    }
    return done(false);
  } catch (error) {
    return done(error instanceof Cut);
  }
}

/**
 * Inflates an object of `size` bytes. Throws `Cut` if the end of the object is missing, and other errors for bytes that are not zlib data.
 */
function inflate(bytes: Buffer, size: number): { content: Buffer; consumed: number } {
  try {
    const { buffer, engine } = inflateSync(bytes, { info: true, maxOutputLength: Math.max(size, 1) }) as unknown as {
      buffer: Buffer;
      engine: { bytesWritten: number };
    };
    if (buffer.length !== size) throw new Error('the object has another size');
    return { content: buffer, consumed: engine.bytesWritten };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'Z_BUF_ERROR') throw new Cut();
    throw error;
  }
}

/**
 * Applies a delta to its base object and returns the new object. Returns undefined if the delta does not fit the base or has too many
 * instructions.
 */
function applyDelta(base: Buffer, delta: Buffer, instructions: { left: number }): Buffer | undefined {
  let at = 0;
  const size = (): number => {
    let value = 0;
    for (let shift = 0; at < delta.length; shift += 7) {
      const part = delta[at++] ?? 0;
      value += (part & 0x7f) * 2 ** shift;
      if (!(part & 0x80)) break;
    }
    return value;
  };
  if (size() !== base.length) return undefined;
  const length = size();
  if (length > maxCommitBytes) return undefined;
  const parts: Buffer[] = [];
  let made = 0;
  while (at < delta.length) {
    instructions.left -= 1;
    if (instructions.left < 0) return undefined;
    const op = delta[at++] ?? 0;
    let part: Buffer;
    if (op & 0x80) {
      let from = 0;
      let bytes = 0;
      for (let bit = 0; bit < 4; bit += 1) if (op & (1 << bit)) from += (delta[at++] ?? 0) * 2 ** (8 * bit);
      for (let bit = 0; bit < 3; bit += 1) if (op & (16 << bit)) bytes += (delta[at++] ?? 0) * 2 ** (8 * bit);
      bytes ||= 0x10000;
      if (from + bytes > base.length) return undefined;
      part = base.subarray(from, from + bytes);
    } else {
      if (op === 0 || at + op > delta.length) return undefined;
      part = delta.subarray(at, at + op);
      at += op;
    }
    made += part.length;
    if (made > length) return undefined;
    parts.push(part);
  }
  return made === length ? Buffer.concat(parts) : undefined;
}

function parentsOf(content: Buffer): readonly string[] {
  const end = content.indexOf('\n\n');
  const head = content.toString('latin1', 0, end < 0 ? content.length : end).split('\n');
  const parents: string[] = [];
  // Lines of a commit: `tree`, then the parents, then other lines.
  for (const line of head.slice(1)) {
    const parent = /^parent ([0-9a-f]{40,64})$/.exec(line)?.[1];
    if (parent === undefined) break;
    parents.push(parent);
  }
  return parents;
}

/** Returns whether `earlier` is an ancestor of `later`, as far as these commits show. */
export function descendsFrom(commits: Commits, later: string, earlier: string): boolean {
  const seen = new Set<string>();
  const waiting = [later];
  for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
    if (id === earlier) return true;
    if (seen.has(id)) continue;
    seen.add(id);
    waiting.push(...(commits.get(id) ?? []));
  }
  return false;
}
