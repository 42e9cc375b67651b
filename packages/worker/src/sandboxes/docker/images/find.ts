import { type Engine, EngineError, type EngineFacts } from '../../engine/engine.ts';
import { type ContainerImage, noLinks, volumesFault } from './image.ts';

/** An image that the engine has. `fault` is set if no sandbox may use the image, and has the reason. */
export interface FoundImage extends ContainerImage {
  readonly bytes: number;
  readonly fault?: { readonly reason: string; readonly message: string };
}

interface Inspected {
  readonly Id: string;
  readonly Size?: number;
  readonly Os?: string;
  readonly Architecture?: string;
  readonly Config?: { readonly Env?: string[] | null; readonly Volumes?: Record<string, object> | null } | null;
}

/** Names that images use for architectures. The keys are the names that engines use. */
const architectures: Readonly<Record<string, string>> = { x86_64: 'amd64', aarch64: 'arm64' };

/** Returns the engine's image with this name; undefined if the engine has no such image. */
export async function findImage(engine: Engine, facts: EngineFacts, name: string): Promise<FoundImage | undefined> {
  const found = await engine.call<Inspected>('GET', `/images/${encodeURI(name)}/json`).catch((error: Error) => {
    if (error instanceof EngineError && error.status === 404) return undefined;
    throw error;
  });
  if (found === undefined) return undefined;
  const image = {
    id: found.Id,
    env: found.Config?.Env ?? [],
    volumes: Object.keys(found.Config?.Volumes ?? {}),
    bytes: found.Size ?? 0,
  };
  const wanted = architectures[facts.architecture] ?? facts.architecture;
  const has = `${found.Os ?? ''}/${found.Architecture ?? ''}`;
  if (found.Os !== 'linux' || (found.Architecture !== wanted && found.Architecture !== '')) {
    const message = `the image ${name} is for ${has}, and the worker's machine is linux/${wanted}: name an image that exists for linux/${wanted}`;
    return { ...image, fault: { reason: 'image_wrong_architecture', message } };
  }
  const volumes = volumesFault(image.volumes);
  if (volumes === undefined) return image;
  return { ...image, fault: { reason: 'image_refused', message: `the image ${name} is refused: ${volumes}` } };
}

/**
 * Returns the first path of `noLinks` that is a link in the image. Returns undefined if none is a link. To read the paths, creates a
 * container of the image, but never starts this container.
 */
export async function findLink(
  engine: Engine,
  image: Pick<ContainerImage, 'id'>,
  labels: Readonly<Record<string, string>>,
  name: string,
): Promise<string | undefined> {
  const json = { Image: image.id, Entrypoint: ['/'], NetworkDisabled: true, Labels: labels };
  const { Id } = await engine.call<{ Id: string }>('POST', '/containers/create', {
    query: { name },
    json,
    // The request has no time limit, because some storage drivers copy the whole image to create a container.
    answerMs: 0,
  });
  try {
    for (const path of noLinks) if (await isLink(engine, Id, path)) return path;
    return undefined;
  } finally {
    await engine.call('DELETE', `/containers/${Id}`, { query: { force: '1', v: '1' } }).catch(() => {});
  }
}

async function isLink(engine: Engine, container: string, path: string): Promise<boolean> {
  try {
    const answer = await engine.stream('HEAD', `/containers/${container}/archive`, { query: { path } });
    answer.resume();
    const stat = JSON.parse(Buffer.from(String(answer.headers['x-docker-container-path-stat']), 'base64').toString());
    return stat.linkTarget !== '';
  } catch (error) {
    if (error instanceof EngineError && error.status === 404) return false;
    throw error;
  }
}
