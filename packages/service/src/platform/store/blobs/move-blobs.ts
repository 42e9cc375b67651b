/** Moves blobs from one store to another while services use them. */
import type { BlobStore } from './blobs.ts';

/**
 * Returns a store that reads blobs in both stores while they move from `old` to `present`. New blobs are stored in `present` only.
 * `delete` deletes in `old` first. So `copyBlobs`, which looks into `old` again after it has copied a blob, notices the deletion and
 * deletes its copy.
 */
export function readBoth(present: BlobStore, old: BlobStore): BlobStore {
  return {
    ...present,
    get: async (key, range) => (await present.get(key, range)) ?? (await old.get(key, range)),
    stat: async (key) => (await present.stat(key)) ?? (await old.stat(key)),
    delete: async (key) => {
      await old.delete(key);
      await present.delete(key);
    },
    async *list() {
      const seen = new Set<string>();
      for await (const blob of present.list()) {
        seen.add(blob.key);
        yield blob;
      }
      for await (const blob of old.list()) if (!seen.has(blob.key)) yield blob;
    },
    presign: async (key, answer) => {
      if (!present.presign || (await present.stat(key)) === undefined) return null;
      return await present.presign(key, answer);
    },
    problem: async () => (await present.problem?.()) ?? (await old.problem?.({ writes: false })) ?? null,
  };
}

export interface CopiedBlobs {
  readonly copied: number;
  /** Number of blobs that the store `to` already had. */
  readonly present: number;
  readonly bytes: number;
}

/**
 * Copies all blobs that `to` does not have, and deletes none in `from`. Services that read both stores may run meanwhile. If such a
 * service deletes or replaces a blob, copying does not undo this.
 */
export async function copyBlobs(
  from: BlobStore,
  to: BlobStore,
  tell: (so: CopiedBlobs) => void = () => {},
): Promise<CopiedBlobs> {
  let sums: CopiedBlobs = { copied: 0, present: 0, bytes: 0 };
  for await (const { key } of from.list()) {
    const wasThere = (await to.stat(key)) !== undefined;
    const blob = wasThere ? undefined : await from.get(key);
    if (blob && (await to.putIfAbsent(key, blob.stream))) {
      // If `from` does not have the blob any more, a service deleted it before the copy was written. Then delete the copy too.
      if ((await from.stat(key)) === undefined) await to.delete(key);
      sums = { ...sums, copied: sums.copied + 1, bytes: sums.bytes + blob.sizeBytes };
    } else if (wasThere) sums = { ...sums, present: sums.present + 1 };
    tell(sums);
  }
  return sums;
}
