/** Provides the images for the sandboxes of a worker: finds images in the engine, pulls missing images, and refuses harmful images. */

import { type ImageName, readImageName } from '@runyard/contract/runs/image-names';
import type { Engine, EngineFacts } from '../../engine/engine.ts';
import { SandboxError } from '../../sandbox.ts';
import type { RegistryCredentials } from './credentials.ts';
import { type FoundImage, findImage, findLink } from './find.ts';
import { type PullProgress, pullImage, tooLarge } from './pull.ts';
import type { PulledImages } from './pulled.ts';

export interface ImagesRequest {
  readonly engine: Engine;
  readonly facts: EngineFacts;
  /** Registries whose images may be used. */
  readonly registries: readonly string[];
  readonly maxBytes: number;
  /** Returns the operator's credentials for a registry. Called for each pull, because the operator may change the file. */
  readonly credentialsFor: (registry: string) => Promise<RegistryCredentials | undefined>;
  /**
   * Labels of containers that are created only to read an image. By these labels, the next worker finds and removes containers that are
   * left.
   */
  readonly labels: Readonly<Record<string, string>>;
  readonly newContainerName: () => string;
  readonly pulled: PulledImages;
}

/** An image for one sandbox. The worker does not remove the image from the engine before `release` is called. */
export interface ProvidedImage extends FoundImage {
  release(): void;
}

/** Functions that are called for the steps of a pull. The timeline of the run shows these steps. */
export interface PullWatcher {
  started(): void;
  progress(progress: PullProgress): void;
  finished(end: { readonly bytes: number } | { readonly error: string }): void;
}

export interface Images {
  /**
   * Returns the image for a sandbox. Rejects with a `SandboxError` that names the next step or, if `signal` is aborted, with the reason
   * of `signal`.
   */
  provide(given: string, watcher: PullWatcher, signal: AbortSignal): Promise<ProvidedImage>;
}

/** A pull for which several runs may wait. The pull is stopped when no run waits for it any more. */
interface Pull {
  readonly done: Promise<void>;
  readonly watchers: Set<PullWatcher>;
  readonly stop: AbortController;
}

/** Opens the images of an engine. */
export function openImages(request: ImagesRequest): Images {
  const { engine, facts, registries, maxBytes, pulled } = request;
  const pulls = new Map<string, Pull>();
  /** Ids of images that were checked and have no harmful links. One check is enough, because all images with the same id have the same content. */
  const checked = new Set<string>();

  const startPull = (name: ImageName): Pull => {
    const stop = new AbortController();
    const watchers = new Set<PullWatcher>();
    const work = async (): Promise<void> => {
      await pulled.begins(name.full);
      await pullImage({
        engine,
        name,
        maxBytes,
        rootFolder: facts.rootFolder,
        credentials: await request.credentialsFor(name.registry),
        signal: stop.signal,
        onProgress: (progress) => {
          for (const watcher of watchers) watcher.progress(progress);
        },
      }).catch(async (error: Error) => {
        await pulled.failed(name.full);
        throw error;
      });
    };
    const done = work().finally(() => forget(name, started));
    done.catch(() => {});
    const started: Pull = { done, watchers, stop };
    pulls.set(name.full, started);
    return started;
  };
  const forget = (name: ImageName, ended: Pull): void => {
    if (pulls.get(name.full) === ended) pulls.delete(name.full);
  };

  const pull = async (name: ImageName, watcher: PullWatcher, signal: AbortSignal): Promise<void> => {
    signal.throwIfAborted();
    const current = pulls.get(name.full) ?? startPull(name);
    current.watchers.add(watcher);
    watcher.started();
    const { promise: aborted, reject } = Promise.withResolvers<never>();
    const abort = (): void => reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    try {
      await Promise.race([current.done, aborted]);
    } finally {
      signal.removeEventListener('abort', abort);
      current.watchers.delete(watcher);
      if (current.watchers.size === 0) {
        // Forgets the pull first, so that no new run joins a pull that is being stopped.
        forget(name, current);
        current.stop.abort(new Error('no run waits for it any more'));
      }
    }
  };

  const check = async (image: FoundImage, name: ImageName): Promise<void> => {
    if (image.fault !== undefined) throw refused(image.fault.reason, image.fault.message);
    if (image.bytes > maxBytes) throw tooLarge(name, maxBytes);
    if (checked.has(image.id)) return;
    const link = await findLink(engine, image, request.labels, request.newContainerName());
    if (link !== undefined)
      throw refused(
        'image_refused',
        `the image ${name.full} is refused: ${link} is a link in it, and the sandbox has a folder there`,
      );
    checked.add(image.id);
  };

  return {
    async provide(given, watcher, signal) {
      const read = readImageName(given);
      if (!read.ok) throw refused('image_refused', read.problem);
      const { name } = read;
      if (!registries.includes(name.registry))
        throw refused(
          'image_refused',
          `the image ${name.full} is refused: this worker takes images of ${registries.join(', ')} only (RUNYARD_DOCKER_REGISTRIES)`,
        );
      const release = await pulled.use(name.full);
      try {
        let image = await findImage(engine, facts, name.full);
        if (image === undefined) {
          await pull(name, watcher, signal).catch((error: Error) => {
            watcher.finished({ error: error.message });
            throw error;
          });
          image = await findImage(engine, facts, name.full);
          if (image === undefined) throw refused('image_not_found', `the image ${name.full} was pulled and is gone`);
          if (image.bytes > maxBytes) await engine.call('DELETE', `/images/${encodeURI(name.full)}`).catch(() => {});
          else await pulled.has(name.full, image);
          void pulled.tidy();
          watcher.finished({ bytes: image.bytes });
        }
        await check(image, name);
        return { ...image, release };
      } catch (error) {
        release();
        if (error instanceof SandboxError || signal.aborted) throw error;
        throw refused('engine_failed', `the container engine failed: ${(error as Error).message}`);
      }
    },
  };
}

const refused = (reason: string, message: string): SandboxError => new SandboxError('prepare', reason, message);
