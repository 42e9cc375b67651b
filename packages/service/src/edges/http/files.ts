/**
 * Routes for the bytes of runs: artifacts, attachments, the files of handoffs, workspaces, and the memory of the built-in harness. All
 * bodies are streamed to the store.
 */
import { maxAttachmentBytes } from '@runyard/contract/limits';
import { routes } from '@runyard/contract/routes';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { invalid, notFound, type Refusal, refuse, tooBusy } from '../../platform/serving/refusal.ts';
import { isUuid } from '../../platform/store/database/uuid.ts';
import { oneUpload } from '../../platform/uploads/lease.ts';
import { holdSandbox } from '../../runs/executions/lease/agent-lease.ts';
import type { RunSession } from '../../runs/executions/run-tokens/sessions.ts';
import { admitCheckpoint } from '../../runs/executions/saved-state.ts';
import { uploadArtifact } from '../../runs/files/artifacts/upload.ts';
import { findAttachment } from '../../runs/files/attachments/read.ts';
import { uploadAttachment } from '../../runs/files/attachments/upload.ts';
import { putHandoffFile } from '../../runs/files/handoffs/put-file.ts';
import { findChangesOfRun } from '../../runs/files/handoffs/read.ts';
import { artifactUploadTarget, attachmentUploadTarget, snapshotUploadTarget } from '../../runs/files/signed-targets.ts';
import { roomOfWorkspace, type StorageRefusal, teamFull } from '../../runs/files/stored-bytes.ts';
import { keepEmptyWorkspace, keepWorkspace } from '../../runs/files/workspaces/keep.ts';
import { findWorkspace } from '../../runs/files/workspaces/of-conversation.ts';
import { findMemory, keepMemory } from '../../runs/harness-support/memory.ts';
import { addRoute } from './server/add-route.ts';
import { refuseSignature } from './server/authorize.ts';
import type { ServiceDeps } from './server/deps.ts';
import { downloadHeaders, sendBlob, sendBytes, sendContent } from './server/download.ts';

/** Registers routes in a scope that parses no body. Their handlers read the body with `bytesOf`. */
function withByteBodies(app: FastifyInstance, register: (scope: FastifyInstance) => void): void {
  app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', (_request, _payload, done) => done(null));
    register(scope);
  });
}

/** Returns the unparsed body of a request. If a loop over the body ends early, the connection stays open for the answer. */
function bytesOf(request: FastifyRequest): AsyncIterable<Uint8Array> {
  return request.raw.iterator({ destroyOnReturn: false });
}

/** Returns a 413 refusal. The rest of the body is not read: the connection ends with the answer. */
function tooManyBytes(reply: FastifyReply, detail: string): Refusal {
  reply.header('connection', 'close');
  return refuse('invalid_request', { status: 413, detail });
}

/** Returns a 429 refusal. The body is not read: the connection ends with the answer. */
function uploadBusy(reply: FastifyReply, detail: string): Refusal {
  reply.header('connection', 'close');
  return tooBusy(detail);
}

/** Registers the routes. */
export function registerFileRoutes(app: FastifyInstance, deps: FileRouteDeps): void {
  registerDownloads(app, deps);
  withByteBodies(app, (scope) => {
    registerSignedUploads(scope, deps);
    registerKeptState(scope, deps);
  });
}

type FileRouteDeps = Pick<ServiceDeps, 'db' | 'blobs' | 'settings' | 'executionDeps' | 'signing' | 'vault' | 'log'>;

/** Registers the downloads for agents. */
function registerDownloads(app: FastifyInstance, { db, blobs }: FileRouteDeps): void {
  addRoute(app, routes.readAttachment, async ({ session, params, reply }) => {
    const attachment = await findAttachment(db, session.runId, params.attachmentId);
    if (!attachment) return notFound('attachment');
    downloadHeaders(reply, attachment.fileName, attachment.mimeType);
    const { content, blobKey, sizeBytes } = attachment;
    const sent = await (content === null
      ? sendBlob(reply, blobs, { key: blobKey, sizeBytes })
      : sendContent(reply, content));
    return sent ? reply : notFound('attachment');
  });

  addRoute(app, routes.readStoredChanges, async ({ session, params, reply }) => {
    const file = await findChangesOfRun(db, session.runId, params.fileId);
    if (!file) return notFound('patch');
    downloadHeaders(reply, file.filename, file.mimeType ?? 'text/x-diff');
    return (await sendBlob(reply, blobs, { key: file.blobKey, sizeBytes: Number(file.sizeBytes) }))
      ? reply
      : notFound('patch');
  });

  addRoute(app, routes.readWorkspace, async ({ session, params, reply }) => {
    const { executionId } = params;
    const key = isUuid(executionId) ? await findWorkspace(db, session, executionId) : null;
    return key !== null && (await sendBytes(reply, blobs, key, 'workspace')) ? reply : notFound('workspace');
  });

  addRoute(app, routes.readMemory, async ({ session, params, reply }) => {
    const key = await findMemory(db, session, params.executionId);
    return key !== null && (await sendBytes(reply, blobs, key, 'memory')) ? reply : notFound('memory');
  });
}

/** Registers the uploads by signed URLs: artifacts, files that a follow-up will name, and the files of a handoff. */
function registerSignedUploads(scope: FastifyInstance, deps: FileRouteDeps): void {
  addRoute(scope, routes.putArtifactContent, async ({ params, query, request, reply }) => {
    const refused = refuseSignature(deps, artifactUploadTarget(params.artifactUid), query);
    if (refused) return refused;
    if (!isUuid(params.artifactUid)) return notFound('artifact');
    const { 'content-length': length, 'content-digest': digest } = request.headers;
    const outcome = await uploadArtifact(deps, params.artifactUid, {
      bytes: bytesOf(request),
      sizeBytes: length === undefined ? undefined : Number(length),
      sha256: sha256Of(digest),
    });
    if (outcome === 'other_digest')
      return invalid([
        {
          path: 'content-digest',
          message: 'is not the digest of the bytes that arrived; the file has probably changed during the upload',
        },
      ]);
    return answerUpload(reply, outcome, {
      not_found: 'artifact',
      busy: 'The run has reached its limit of concurrent uploads.',
      other_bytes: 'The artifact has other bytes already; report a new one.',
    });
  });

  addRoute(scope, routes.putAttachment, async ({ params, query, request, reply }) => {
    const refused = refuseSignature(deps, attachmentUploadTarget(params.attachmentId), query);
    if (refused) return refused;
    const too_large = `An attachment has at most ${maxAttachmentBytes / 1024 / 1024} MB.`;
    if (Number(request.headers['content-length'] ?? 0) > maxAttachmentBytes) return tooManyBytes(reply, too_large);
    return answerUpload(reply, await uploadAttachment(deps, params.attachmentId, bytesOf(request)), {
      not_found: 'file',
      busy: 'The run has reached its limit of concurrent uploads.',
      too_large,
      other_bytes: 'The file has other bytes already; prepare a new one.',
    });
  });

  addRoute(scope, routes.putSnapshotFile, async ({ params, query, request, reply }) => {
    const refused = refuseSignature(deps, snapshotUploadTarget(params.fileId), query);
    if (refused) return refused;
    const outcome = await putHandoffFile(deps, params.fileId, bytesOf(request));
    if (outcome === 'too_short')
      return refuse('invalid_request', { detail: 'The body has fewer bytes than were announced.' });
    return answerUpload(reply, outcome, {
      not_found: 'file',
      busy: 'The execution uploads other files.',
      too_large: 'The body has more bytes than were announced.',
      other_bytes: 'The file has other bytes already; begin a new snapshot.',
    });
  });
}

/** Registers the uploads of the state that the next sandbox of a run or conversation reads: the workspace and the memory. */
function registerKeptState(scope: FastifyInstance, deps: FileRouteDeps): void {
  const { db, settings } = deps;
  addRoute(scope, routes.keepWorkspace, async ({ session, query, request, reply }) => {
    const { turn, checkpoint } = query;
    const refused = checkpoint === undefined ? undefined : await refuseCheckpoint(deps, reply, session, checkpoint);
    if (refused) return refused;
    const moment = { turn, checkpoint };
    if (request.headers['content-length'] === '0') {
      await keepEmptyWorkspace(deps, session, moment);
      return {};
    }
    const most = settings.RUNYARD_WORKSPACE_MB * 1024 * 1024;
    const room = await roomOfWorkspace(deps.executionDeps, session.executionId);
    const maxBytes = Math.min(most, room.bytes);
    const kind = { name: `workspace/${session.executionId}`, most: 1 };
    const outcome = await oneUpload(db, kind, bytesOf(request), (body) =>
      holdSandbox(db, session, () =>
        keepWorkspace(deps, session, moment, { body, maxBytes, sessionId: query.session_id }),
      ),
    );
    return answerUpload(reply, outcome, {
      busy: 'The execution uploads a workspace already.',
      too_large:
        room.bytes < most
          ? teamFull(deps.executionDeps, room.stored).detail
          : `A workspace has at most ${settings.RUNYARD_WORKSPACE_MB} MB (RUNYARD_WORKSPACE_MB).`,
    });
  });

  addRoute(scope, routes.keepMemory, async ({ session, query, request, reply }) => {
    const of = { turn: query.turn, requestId: query.request_id };
    const kind = { name: `memory/${session.executionId}`, most: 1 };
    const outcome = await oneUpload(db, kind, bytesOf(request), (body) => keepMemory(deps, session, of, body));
    return answerUpload(reply, outcome, {
      busy: 'The execution uploads a memory already.',
      too_large: 'A memory has at most 32 MB.',
    });
  });
}

/** Returns why the service does not store a checkpoint now; undefined: it stores the checkpoint. */
async function refuseCheckpoint(
  { db, settings }: FileRouteDeps,
  reply: FastifyReply,
  { executionId }: RunSession,
  number: number,
): Promise<Refusal | undefined> {
  const leastSeconds = settings.RUNYARD_CHECKPOINT_SECONDS / 2;
  const admission = leastSeconds === 0 ? 'unknown' : await admitCheckpoint(db, { executionId, number, leastSeconds });
  if (admission === 'early') return uploadBusy(reply, 'The last checkpoint was kept a short time ago.');
  if (admission !== 'unknown') return undefined;
  // The body is not read: the connection ends with the answer.
  reply.header('connection', 'close');
  return refuse('conflict', {
    detail:
      'checkpoint: the service has no event of this checkpoint, the run does not have on_worker_loss: resume, or RUNYARD_CHECKPOINT_SECONDS is 0. Report the event first, and take no checkpoints otherwise.',
  });
}

type Refused = 'not_found' | 'busy' | 'too_large' | 'other_bytes';

/**
 * Answers an upload. `texts` has the name of what was not found, and the details of the other refusals. A storage limit has a detail of its own.
 */
function answerUpload<Outcome extends Refused>(
  reply: FastifyReply,
  outcome: 'stored' | Outcome | StorageRefusal,
  texts: Readonly<Record<Outcome, string>>,
): Record<string, never> | Refusal {
  if (typeof outcome === 'object') return tooManyBytes(reply, outcome.detail);
  if (outcome === 'stored') return {};
  const text = texts[outcome];
  switch (outcome) {
    case 'not_found':
      return notFound(text);
    case 'busy':
      return uploadBusy(reply, text);
    case 'too_large':
      return tooManyBytes(reply, text);
    default:
      return refuse('conflict', { detail: text });
  }
}

/** Returns the SHA-256 in a `Content-Digest` (RFC 9530). Other algorithms are ignored. */
function sha256Of(digest: string | string[] | undefined): Buffer | undefined {
  const [, encoded] = /(?:^|[,\s])sha-256=:([A-Za-z0-9+/]{43}=):/.exec(String(digest ?? '')) ?? [];
  return encoded === undefined ? undefined : Buffer.from(encoded, 'base64');
}
