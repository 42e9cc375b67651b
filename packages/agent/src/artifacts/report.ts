import { basename, isAbsolute, relative, resolve, sep } from 'node:path';
import { mimeTypeOf } from '@runyard/contract/wire/mime-types';
import { type OpenFile, openRegularFile } from '../open-regular-file.ts';
import type { ServiceClient } from '../service/client.ts';
import { ServiceRefusal, UnreadableBody } from '../service/errors.ts';
import { openChunks, pathOf, sha256Of, uploadProgress } from './upload-file.ts';

/** An artifact in the form in which a command or the model reports it. */
export interface ArtifactRequest {
  type: string;
  path?: string | undefined;
  title?: string | undefined;
  description?: string | undefined;
  url?: string | undefined;
  branch?: string | undefined;
  reference_type?: string | undefined;
  content?: string | undefined;
  mime_type?: string | undefined;
}

export type ArtifactResult = { ok: true; artifact_uid: string } | { ok: false; message: string };

export interface ArtifactOptions {
  client: Pick<ServiceClient, 'reportArtifact' | 'upload'>;
  /** Folder of the caller. Relative paths in the request start there. */
  cwd: string;
  /** The workspace. Paths in reports to the service are relative to this folder. */
  workspace: string;
  signal?: AbortSignal | undefined;
  /** Gets lines about a long upload. */
  onProgress?: ((line: string) => void) | undefined;
}

const maxPlanBytes = 1024 * 1024;

/**
 * Reports an artifact and uploads its file, if it has one. Does not throw because of a mistake of the caller, but returns the mistake as a
 * result.
 */
export async function reportArtifact(request: ArtifactRequest, options: ArtifactOptions): Promise<ArtifactResult> {
  try {
    switch (request.type) {
      case 'FILE':
      case 'SCREENSHOT':
        return await reportFile(request, options);
      case 'PLAN':
        return await reportPlan(request, options);
      case 'PULL_REQUEST':
        return await report(options, request, { url: required(request, 'url'), branch: required(request, 'branch') });
      case 'EXTERNAL_REFERENCE':
        return await report(options, request, {
          reference_type: request.reference_type ?? 'link',
          url: required(request, 'url'),
          ...optional(request, 'title'),
        });
      default:
        return failure(
          `unknown artifact type ${JSON.stringify(request.type)}; known: FILE, SCREENSHOT, PLAN, PULL_REQUEST, EXTERNAL_REFERENCE`,
        );
    }
  } catch (error) {
    if (error instanceof ServiceRefusal) return failure(`the service refused the artifact: ${error.detail}`);
    if (error instanceof BadArtifact || error instanceof UnreadableBody) return failure(error.message);
    throw error;
  }
}

class BadArtifact extends Error {}

const failure = (message: string): ArtifactResult => ({ ok: false, message });

async function reportFile(request: ArtifactRequest, options: ArtifactOptions): Promise<ArtifactResult> {
  const path = resolve(options.cwd, required(request, 'path'));
  const { file, size } = await openFile(path);
  try {
    const mimeType = request.mime_type ?? mimeTypeOf(path);
    const answer = await options.client.reportArtifact(
      {
        artifact_type: request.type as 'FILE' | 'SCREENSHOT',
        data: {
          filename: basename(path),
          filepath: reportedPath(options.workspace, path),
          mime_type: mimeType,
          size_bytes: size,
          ...optional(request, 'title'),
          ...optional(request, 'description'),
        },
      },
      { signal: options.signal },
    );
    if (answer.upload_url !== undefined) {
      const progress = options.onProgress && uploadProgress(size, options.onProgress);
      await options.client.upload(pathOf(answer.upload_url), () => openChunks(file, size, progress), size, mimeType, {
        signal: options.signal,
        sha256: await sha256Of(file, size),
      });
    }
    return { ok: true, artifact_uid: answer.artifact_uid };
  } finally {
    await file.close();
  }
}

/** Returns a path inside of the workspace as a path relative to the workspace. Returns a path outside of the workspace unchanged. */
function reportedPath(workspace: string, path: string): string {
  const inside = relative(workspace, path);
  return inside === '..' || inside.startsWith(`..${sep}`) || isAbsolute(inside) ? path : inside;
}

async function reportPlan(request: ArtifactRequest, options: ArtifactOptions): Promise<ArtifactResult> {
  let content = request.content;
  if (content === undefined) {
    const { file, size } = await openFile(resolve(options.cwd, required(request, 'path')));
    try {
      if (size > maxPlanBytes) throw new BadArtifact(`the plan is larger than ${maxPlanBytes} bytes`);
      content = await file.readFile('utf8');
    } finally {
      await file.close();
    }
  }
  return await report(options, request, { ...optional(request, 'title'), content });
}

async function report(
  options: ArtifactOptions,
  request: ArtifactRequest,
  data: Record<string, unknown>,
): Promise<ArtifactResult> {
  const answer = await options.client.reportArtifact(
    { artifact_type: request.type as 'PLAN' | 'PULL_REQUEST' | 'EXTERNAL_REFERENCE', data },
    { signal: options.signal },
  );
  return { ok: true, artifact_uid: answer.artifact_uid };
}

/** Opens the file of an artifact. Throws `BadArtifact`. */
async function openFile(path: string): Promise<OpenFile> {
  try {
    return await openRegularFile(path, { follows: false });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === undefined) throw new BadArtifact(message);
    if (code === 'ENOENT' || code === 'ENOTDIR') throw new BadArtifact(`there is no file ${path}`);
    if (code === 'ELOOP') throw new BadArtifact(`${path} is a symbolic link; report the file it points to`);
    if (code === 'EACCES' || code === 'ENXIO') throw new BadArtifact(`${path} cannot be read (${code})`);
    throw new BadArtifact(`${path} cannot be opened: ${message}`);
  }
}

function required(request: ArtifactRequest, key: 'path' | 'url' | 'branch'): string {
  const value = request[key];
  if (value === undefined || value.trim() === '')
    throw new BadArtifact(`an artifact of type ${request.type} needs ${key}`);
  return value;
}

function optional(request: ArtifactRequest, key: 'title' | 'description'): Record<string, string> {
  const value = request[key];
  return value === undefined ? {} : { [key]: value };
}
