/** Serves Git LFS for the repositories of a run. The addresses of objects, which are signed, never reach the sandbox. */
import { Transform } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { BodyBudget } from '../../../platform/bodies/body-budget.ts';
import { holdBody } from '../../../platform/bodies/request-bodies.ts';
import { AttemptOver } from '../../../runs/executions/run-tokens/attempt.ts';
import type { RunSession } from '../../../runs/executions/run-tokens/sessions.ts';
import { TooManyChanges } from '../../../team/access/audit/record.ts';
import { gatewayPathOf } from '../../../team/environments/git-path.ts';
import { passOn } from '../models/pass-on.ts';
import {
  askBatch,
  askObject,
  LfsFault,
  type LfsHost,
  type LfsHostDeps,
  maxBatchObjects,
  silenceMs,
  transfer,
} from './lfs-host.ts';
import type { LfsObject, LfsRequest } from './lfs-request.ts';
import type { PushRecord } from './push.ts';

const contentType = 'application/vnd.git-lfs+json';
const maxBatchBytes = 256 * 1024;
const maxMessageLength = 200;

const BatchRequest = z.object({
  operation: z.enum(['download', 'upload']),
  hash_algo: z.literal('sha256').optional(),
  objects: z.array(z.object({ oid: z.string().regex(/^[0-9a-f]{64}$/), size: z.int().min(0) })).max(maxBatchObjects),
});

export interface LfsGateway extends LfsHostDeps {
  readonly bodies: BodyBudget;
  readonly pushes: Pick<
    PushRecord,
    'protectedBranchesOf' | 'areHeld' | 'whyRepositoriesStay' | 'isAtWork' | 'recordUpload'
  >;
  /** Largest object, bytes. */
  readonly limit: number;
}

export interface AdmittedLfs {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly wanted: LfsRequest;
  readonly session: RunSession;
  readonly host: LfsHost;
  readonly ownHeaders: Readonly<Record<string, string>>;
  /** Aborts when the client disconnects or the service closes. */
  readonly signal: AbortSignal;
}

/** Answers a request of Git LFS that the gateway has admitted. Returns the status and, if it failed, the reason, for the log. */
export async function answerLfs(
  deps: LfsGateway,
  admitted: AdmittedLfs,
): Promise<{ readonly status: number; readonly why?: string }> {
  const { reply, wanted, ownHeaders } = admitted;
  try {
    if (wanted.kind === 'batch') await batch(deps, admitted);
    else if (wanted.kind === 'download') await download(deps, admitted, wanted.object);
    else await upload(deps, admitted, wanted.object);
    return { status: reply.raw.statusCode };
  } catch (error) {
    if (!(error instanceof LfsFault)) throw error;
    if (reply.raw.headersSent) reply.raw.destroy();
    else {
      // Close the connection, because the unread rest of an upload would block it for the next request.
      reply.raw.writeHead(error.status, { ...ownHeaders, 'content-type': contentType, connection: 'close' });
      reply.raw.end(JSON.stringify({ message: error.message }));
    }
    return { status: error.status, why: error.message };
  }
}

async function batch(deps: LfsGateway, admitted: AdmittedLfs): Promise<void> {
  const { request, reply, session, wanted, host, signal } = admitted;
  const owner = { teamId: session.teamId, executionId: session.executionId };
  const body = { request: request.raw, response: reply.raw, owner, maxBytes: maxBatchBytes };
  const received = await holdBody(deps.bodies, body);
  if (received.kind !== 'body') throw new LfsFault(received.kind === 'busy' ? 429 : 413, 'The request cannot be read.');
  const parsed = BatchRequest.safeParse(jsonOf(received.bytes));
  if (!parsed.success)
    throw new LfsFault(422, `The gateway takes batches of up to ${maxBatchObjects} objects by their SHA-256.`);
  const { operation, objects } = parsed.data;
  if (operation === 'upload') await checkUpload(deps, admitted);
  const answer = await askBatch(host, operation, objects, signal);
  const asked = new Map(objects.map((object) => [object.oid, object]));
  const answered = answer.objects.flatMap(({ oid, actions, error }) => {
    const object = asked.get(oid);
    if (object === undefined) return [];
    if (error) return [{ ...object, error: { code: error.code, message: error.message.slice(0, maxMessageLength) } }];
    if (object.size > deps.limit)
      return [
        { ...object, error: { code: 413, message: `files of more than ${deps.limit} bytes are not transferred` } },
      ];
    if (actions?.[operation] === undefined) return [object];
    // A path below the server root: the git proxy of the agent completes it.
    const href = `${gatewayPathOf(wanted.repository)}/info/lfs/objects/${oid}?size=${object.size}`;
    return [{ ...object, authenticated: true, actions: { [operation]: { href } } }];
  });
  const text = JSON.stringify({ transfer: 'basic', objects: answered, hash_algo: 'sha256' });
  reply.raw.writeHead(200, { ...admitted.ownHeaders, 'content-type': contentType }).end(text);
}

async function download(deps: LfsGateway, admitted: AdmittedLfs, object: LfsObject): Promise<void> {
  const { reply, host, signal, ownHeaders } = admitted;
  if (object.size > deps.limit) throw new LfsFault(413, 'The file is larger than the gateway transfers.');
  const { download: action } = await askObject(host, 'download', object, signal);
  if (action === undefined) throw new LfsFault(404, 'The code host names no address for this file of Git LFS.');
  const response = await transfer(deps, host, { method: 'GET', action, signal });
  const { statusCode: status, headers } = response;
  const announced = headers['content-length'];
  if (status !== 200 || (announced !== undefined && Number(announced) !== object.size)) {
    response.destroy();
    const why = status === 200 ? `sent ${announced} instead of ${object.size} bytes` : `answered ${status}`;
    throw new LfsFault(502, `The store of files of Git LFS ${why}.`);
  }
  reply.raw.writeHead(200, {
    ...ownHeaders,
    'content-type': 'application/octet-stream',
    'content-length': String(object.size),
  });
  const body = response.pipe(atMost(object.size));
  await passOn(response, body, reply.raw, { silenceMs, hangUpMs: 0 }, () => {});
}

async function upload(deps: LfsGateway, admitted: AdmittedLfs, object: LfsObject): Promise<void> {
  const { request, reply, session, wanted, host, signal, ownHeaders } = admitted;
  await checkUpload(deps, admitted);
  if (object.size > deps.limit) throw new LfsFault(413, 'The file is larger than the gateway transfers.');
  if (request.headers['content-length'] !== String(object.size))
    throw new LfsFault(422, 'The length of the body must be the size of the object.');
  const { upload: action, verify } = await askObject(host, 'upload', object, signal);
  if (action !== undefined) {
    await deps.pushes.recordUpload(session, wanted.repository, object).catch((error: Error) => {
      if (error instanceof AttemptOver) throw new LfsFault(403, 'The run has ended or is stopping.');
      if (error instanceof TooManyChanges)
        throw new LfsFault(429, 'The team has made too many changes. Upload again later.');
      throw error;
    });
    const headers = { 'content-type': 'application/octet-stream', 'content-length': String(object.size) };
    const response = await transfer(deps, host, { method: 'PUT', action, headers, body: request.raw, signal });
    response.resume();
    const { statusCode: status = 502 } = response;
    if (status < 200 || status > 299)
      throw new LfsFault(status === 403 ? 403 : 502, `The store of files of Git LFS answered ${status}.`);
  } else request.raw.resume();
  if (verify !== undefined) {
    const body = Buffer.from(JSON.stringify(object));
    const headers = { accept: contentType, 'content-type': contentType, 'content-length': String(body.byteLength) };
    const response = await transfer(deps, host, { method: 'POST', action: verify, headers, body, signal });
    response.resume();
    if (response.statusCode !== 200)
      throw new LfsFault(422, `The code host did not accept the file of Git LFS (${response.statusCode}).`);
  }
  reply.raw.writeHead(200, ownHeaders).end();
}

/** Throws if the run may push to no branch at all, or change no repository, or is not at work. The push itself checks the branch and the approval. */
async function checkUpload({ pushes }: LfsGateway, { session, wanted }: AdmittedLfs): Promise<void> {
  // A person would have to approve bytes that no page shows.
  if (await pushes.areHeld(session, wanted.repository))
    throw new LfsFault(
      403,
      'A rule of this run holds pushes to this repository, so the run may not upload files of Git LFS. Start a run without the rule for such files.',
    );
  const { executionId } = session;
  const isForbidden =
    (await pushes.protectedBranchesOf(executionId)).includes('*') ||
    (await pushes.whyRepositoriesStay(executionId)) !== undefined;
  if (isForbidden || !(await pushes.isAtWork(session)))
    throw new LfsFault(403, 'This run may not push to the repository, so it may not upload files of Git LFS.');
}

/** Ends with an error when more than `bytes` bytes have come. */
function atMost(bytes: number): Transform {
  let left = bytes;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      left -= chunk.byteLength;
      done(left < 0 ? new Error('more bytes than announced') : null, chunk);
    },
  });
}

function jsonOf(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch {
    return undefined;
  }
}
