/**
 * Records the images that this worker has pulled. If all pulled images together are too large, removes the least recently used images.
 * Images that the engine already had belong to the operator; they are not recorded and never removed. The record is a file in the data
 * folder, because a pulled image cannot get labels of Runyard.
 */
import { existsSync, readFileSync } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { type Engine, EngineError } from '../../engine/engine.ts';

const pulledSchema = z.object({
  /** Full name, with tag or digest. */
  name: z.string(),
  /** Absent if the pull has begun and its end was not recorded. */
  id: z.string().optional(),
  bytes: z.number(),
  /** Milliseconds since 1970. */
  usedAt: z.number(),
});
type PulledImage = z.infer<typeof pulledSchema>;
const fileSchema = z.array(pulledSchema);

export interface PulledRequest {
  readonly engine: Engine;
  readonly stateRoot: string;
  /** Maximum number of bytes of all pulled images together. If it is 0, no image is removed. */
  readonly maxBytes: number;
  readonly log: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
  readonly now: () => number;
}

export interface PulledImages {
  /** Records that a pull begins. The engine does not have the image yet. */
  begins(name: string): Promise<void>;
  /** Removes the record of a pull that has failed. */
  failed(name: string): Promise<void>;
  /** Records the image of a pull that was successful. */
  has(name: string, image: { readonly id: string; readonly bytes: number }): Promise<void>;
  /**
   * Prevents the removal of the image with this name until the returned function is called. This is needed before the image has a
   * container, because the engine itself refuses only the removal of images with containers.
   */
  use(name: string): Promise<() => void>;
  /** Removes the least recently used images until all pulled images together are within the limit. */
  tidy(): Promise<void>;
}

const fileOf = (stateRoot: string): string => path.join(stateRoot, 'pulled-images.json');

function read(stateRoot: string, log: PulledRequest['log']): PulledImage[] {
  const file = fileOf(stateRoot);
  try {
    return existsSync(file) ? fileSchema.parse(JSON.parse(readFileSync(file, 'utf8'))) : [];
  } catch (error) {
    log.warn(
      { error, file },
      'the record of pulled images cannot be read; the images in it stay until you remove them',
    );
    return [];
  }
}

/** Opens the record of a data folder. The caller holds the lock of the folder. */
export function openPulledImages({ engine, stateRoot, maxBytes, log, now }: PulledRequest): PulledImages {
  let images = read(stateRoot, log);
  const uses = new Map<string, number>();
  let turn: Promise<void> = Promise.resolve();
  /** Runs functions one after the other, in the order of the calls. */
  const inTurn = (work: () => Promise<void>): Promise<void> => {
    turn = turn.then(work).catch((error: Error) => {
      log.warn({ error: error.message }, 'the record of the images that this worker has pulled could not be kept');
    });
    return turn;
  };

  const save = async (): Promise<void> => {
    const file = fileOf(stateRoot);
    await writeFile(`${file}.new`, JSON.stringify(images), { mode: 0o600 });
    await rename(`${file}.new`, file);
  };
  const replace = (name: string, image?: PulledImage): void => {
    images = [...images.filter((other) => other.name !== name), ...(image === undefined ? [] : [image])];
  };

  /** Returns the image that has this name in the engine now. */
  const inspect = async (name: string): Promise<{ id: string; bytes: number } | undefined> => {
    try {
      const found = await engine.call<{ Id: string; Size?: number }>('GET', `/images/${encodeURI(name)}/json`);
      return { id: found.Id, bytes: found.Size ?? 0 };
    } catch (error) {
      if (error instanceof EngineError && error.status === 404) return undefined;
      throw error;
    }
  };

  /**
   * Corrects the record, because the engine may have lost images or may use their names for other images. Does not change the record
   * of a pull in progress.
   */
  const compare = async (): Promise<void> => {
    for (const image of images) {
      if (uses.has(image.name)) continue;
      const found = await inspect(image.name);
      const isOurs = found !== undefined && (image.id === undefined || image.id === found.id);
      replace(image.name, isOurs ? { ...image, ...found } : undefined);
    }
  };

  const remove = async ({ name, bytes }: PulledImage): Promise<void> => {
    try {
      await engine.call('DELETE', `/images/${encodeURI(name)}`, { answerMs: 0 });
    } catch (error) {
      // 409: a container uses the image. 404: the engine no longer has the image, and the next call of `compare` removes it from the
      // record.
      if (error instanceof EngineError && (error.status === 409 || error.status === 404)) return;
      throw error;
    }
    replace(name);
    log.info({ image: name, bytes }, 'an image was removed, because the pulled images are too large together');
  };

  const total = (): number => images.reduce((sum, { bytes }) => sum + bytes, 0);
  const tidy = async (): Promise<void> => {
    const isUnknown = images.some(({ id }) => id === undefined);
    if (maxBytes === 0 || (total() <= maxBytes && !isUnknown)) return;
    await inTurn(compare);
    for (const { name } of images.toSorted((a, b) => a.usedAt - b.usedAt))
      await inTurn(async () => {
        const image = images.find((each) => each.name === name);
        if (image?.id !== undefined && total() > maxBytes && !uses.has(name)) await remove(image);
      });
    await inTurn(save);
  };

  return {
    begins: (name) =>
      inTurn(async () => {
        replace(name, { name, bytes: 0, usedAt: now() });
        await save();
      }),
    failed: (name) =>
      inTurn(async () => {
        replace(name);
        await save();
      }),
    has: (name, image) =>
      inTurn(async () => {
        replace(name, { name, ...image, usedAt: now() });
        await save();
      }),
    async use(name) {
      // Waits for earlier calls to end, so that no removal of images is in progress while this use is recorded.
      await inTurn(async () => void uses.set(name, (uses.get(name) ?? 0) + 1));
      let isOver = false;
      return () => {
        if (isOver) return;
        isOver = true;
        const left = (uses.get(name) ?? 1) - 1;
        if (left === 0) uses.delete(name);
        else uses.set(name, left);
        images = images.map((image) => (image.name === name ? { ...image, usedAt: now() } : image));
        void inTurn(save);
        void tidy();
      };
    },
    tidy,
  };
}
