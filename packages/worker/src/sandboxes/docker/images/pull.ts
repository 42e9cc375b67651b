import { statfs } from 'node:fs/promises';
import { StringDecoder } from 'node:string_decoder';
import type { ImageName } from '@runyard/contract/runs/image-names';
import { type Engine, EngineError } from '../../engine/engine.ts';
import { SandboxError } from '../../sandbox.ts';
import type { RegistryCredentials } from './credentials.ts';

/** Free and total space of a disk, in bytes. */
interface Space {
  readonly free: number;
  readonly total: number;
}

/** If the free disk space is less than this number of bytes, every pull stops. */
const leastFree = 512 * 1024 * 1024;
/** A large pull must leave a tenth of the disk free, or this number of bytes if a tenth of the disk is more. */
const mostKept = 8 * 1024 * 1024 * 1024;

/** Returns the free and total space on the disk of a folder; undefined if this process cannot see the folder. */
async function readSpace(folder: string): Promise<Space | undefined> {
  const found = await statfs(folder).catch(() => undefined);
  return found && { free: found.bavail * found.bsize, total: found.blocks * found.bsize };
}

/**
 * Returns whether a pull must stop because the disk is nearly full. If the used space of the disk has grown by more than `maxBytes` since
 * the start of the pull, the pull must leave a tenth of the disk free, or `mostKept` if that is less. This growth does not prove
 * that the image is too large, because other pulls and programs write to the disk too. So the size of the image is checked after the pull.
 */
export function isNearlyFull(before: Space, now: Space, maxBytes: number): boolean {
  if (now.free < leastFree) return true;
  return before.free - now.free > maxBytes && now.free < Math.min(now.total / 10, mostKept);
}

/** Progress of a pull. */
export interface PullProgress {
  readonly downloadedBytes: number;
  /** Sum of the sizes of those parts whose size is known. */
  readonly totalBytes: number;
}

export interface PullRequest {
  readonly engine: Engine;
  readonly name: ImageName;
  /** Maximum number of bytes of an image. The limit applies to the packed and to the unpacked image. */
  readonly maxBytes: number;
  /** Folder of the engine's images. */
  readonly rootFolder: string;
  readonly onProgress: (progress: PullProgress) => void;
  readonly signal: AbortSignal;
  /** The operator's credentials for the image's registry. */
  readonly credentials?: RegistryCredentials | undefined;
  /** Reads the space of a disk. Tests pass another function. */
  readonly spaceOf?: (folder: string) => Promise<Space | undefined>;
}

/** A line of the answer of `POST /images/create`. */
interface Line {
  readonly id?: string;
  readonly status?: string;
  readonly error?: string;
  readonly progressDetail?: { readonly current?: number; readonly total?: number };
}

const spaceCheckMs = 500;
/**
 * If the engine sends no message for this time, the pull has failed. A working engine sends messages while it downloads and unpacks.
 */
const silenceMs = 600_000;
const longestLine = 1024 * 1024;

/**
 * Pulls an image. Rejects with a `SandboxError` that has the reason. If `signal` is aborted, aborts the request, and the engine stops the
 * pull.
 */
export async function pullImage(request: PullRequest): Promise<void> {
  const { engine, name, maxBytes, signal } = request;
  const withoutSecrets = (text: string): string =>
    (request.credentials?.secrets ?? []).reduce((rest, secret) => rest.replaceAll(secret, '[removed]'), text);
  const stop = new AbortController();
  const either = AbortSignal.any([signal, stop.signal]);
  const spaceOf = request.spaceOf ?? readSpace;
  const before = await spaceOf(request.rootFolder);
  let spokeAt = performance.now();
  const watch = setInterval(async () => {
    const now = await spaceOf(request.rootFolder);
    if (before !== undefined && now !== undefined && isNearlyFull(before, now, maxBytes))
      stop.abort(failed('image_no_space', name, 'the disk of the worker is nearly full'));
    else if (performance.now() - spokeAt > silenceMs)
      stop.abort(failed('image_not_pulled', name, `nothing of it arrived in ${silenceMs / 60_000} minutes`));
  }, spaceCheckMs);
  try {
    const answer = await engine.stream('POST', '/images/create', {
      query: { fromImage: name.full },
      signal: either,
      registryAuth: request.credentials?.header,
      answerMs: 0,
    });
    const parts = new Map<string, { current: number; total: number }>();
    for await (const line of linesOf(answer)) {
      spokeAt = performance.now();
      if (line.error !== undefined) throw refusal(name, withoutSecrets(line.error));
      const { current = 0, total = 0 } = line.progressDetail ?? {};
      if (line.id === undefined || line.status !== 'Downloading' || total <= 0) continue;
      parts.set(line.id, { current, total });
      const progress = { downloadedBytes: sum(parts, 'current'), totalBytes: sum(parts, 'total') };
      if (progress.totalBytes > maxBytes) stop.abort(tooLarge(name, maxBytes));
      either.throwIfAborted();
      request.onProgress(progress);
    }
    either.throwIfAborted();
  } catch (error) {
    if (stop.signal.aborted) throw stop.signal.reason;
    if (signal.aborted) throw signal.reason;
    if (error instanceof SandboxError) throw error;
    if (error instanceof EngineError) throw refusal(name, withoutSecrets(error.message));
    throw failed('image_not_pulled', name, (error as Error).message);
  } finally {
    clearInterval(watch);
  }
}

const sum = (parts: ReadonlyMap<string, { current: number; total: number }>, which: 'current' | 'total'): number =>
  [...parts.values()].reduce((all, part) => all + part[which], 0);

const failed = (reason: string, name: ImageName, message: string): SandboxError =>
  new SandboxError('prepare', reason, `the image ${name.full} could not be pulled: ${message}`);

/** Returns the error about an image that is too large. */
export const tooLarge = (name: ImageName, maxBytes: number): SandboxError =>
  failed(
    'image_too_large',
    name,
    `it is larger than the ${Math.round(maxBytes / 1024 / 1024)} MB of RUNYARD_DOCKER_IMAGE_MB; name a smaller image, or raise the setting of the worker`,
  );

/**
 * Returns the error for an engine's message about a failed pull. Finds the kind of fault in the text, because the status is already
 * 200 when a pull begins.
 */
function refusal(name: ImageName, text: string): SandboxError {
  const reasonText = text.trim().slice(0, 300);
  if (/no matching manifest|does not match the specified platform|image operating system/i.test(text))
    return failed(
      'image_wrong_architecture',
      name,
      `it does not exist for the architecture of the worker's machine; name an image that does (${reasonText})`,
    );
  if (/unauthorized|authentication required|no basic auth|denied|forbidden|\b40[13]\b/i.test(text))
    return failed(
      'image_no_access',
      name,
      `its registry wants credentials, or does not have it. Check the name; the operator of the worker gives credentials with RUNYARD_DOCKER_CONFIG (${reasonText})`,
    );
  if (/manifest unknown|not found|name unknown|\b404\b/i.test(text))
    return failed('image_not_found', name, `its registry does not have it; check name and tag (${reasonText})`);
  if (/no space left/i.test(text))
    return failed('image_no_space', name, `the disk of the worker is full (${reasonText})`);
  return failed('image_not_pulled', name, reasonText);
}

async function* linesOf(answer: AsyncIterable<Uint8Array>): AsyncGenerator<Line> {
  const decoder = new StringDecoder('utf8');
  let text = '';
  for await (const chunk of answer) {
    text += decoder.write(Buffer.from(chunk));
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n')) {
      const line = text.slice(0, end).trim();
      text = text.slice(end + 1);
      if (line !== '') yield JSON.parse(line);
    }
    if (text.length > longestLine) throw new Error('the answer of the engine cannot be read');
  }
}
