import { waitingHeader } from '@runyard/contract/agent/headers';
import type { Repository } from '@runyard/contract/environments/repositories';
import { maxGitRequestsAtOnce, maxPushBytes } from '@runyard/contract/limits';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { closedSignal } from '../../../platform/bodies/answered-client.ts';
import type { BodyBudget } from '../../../platform/bodies/body-budget.ts';
import { makePlaces } from '../../../platform/bodies/places.ts';
import { busyRetrySeconds } from '../../../platform/serving/refusal.ts';
import type { RunSession } from '../../../runs/executions/run-tokens/sessions.ts';
import type { ChosenCredential, UsableCredential } from '../../../team/code-hosts/credential.ts';
import { codeHostUrl } from '../../../team/code-hosts/url.ts';
import { gitGatewayPath } from '../../../team/environments/git-path.ts';
import { trackInFlight } from '../in-flight.ts';
import { runTokenOf } from '../models/credentials.ts';
import type { GatewayLog } from '../models/handle-request.ts';
import { passOn } from '../models/pass-on.ts';
import { type GitRequest, gitRequestOf } from './git-path.ts';
import { type CodeHostAnswer, openCodeHost } from './git-upstream.ts';
import { answerLfs } from './lfs.ts';
import type { LfsHostDeps } from './lfs-host.ts';
import { type LfsRequest, lfsRequestOf } from './lfs-request.ts';
import { type AnsweredPush, admitPush, type PushRecord } from './push.ts';

export interface GitGatewayDeps extends LfsHostDeps {
  /** Value of RUNYARD_CODE_HOST_URL. */
  readonly codeHostUrl: string;
  authenticateRunToken(token: string): Promise<RunSession | null>;
  /** Repositories of the environment of this execution's run. */
  repositoriesOf(executionId: string): Promise<readonly Repository[]>;
  /** Chooses the credential with which the run may now reach a repository. */
  credentialFor(session: RunSession, repository: Repository): Promise<ChosenCredential>;
  readonly pushes: PushRecord;
  readonly bodies: BodyBudget;
  readonly log: GatewayLog;
  /** Largest push, and largest file of Git LFS. Default: 2 GB. */
  readonly maxPushBytes?: number;
  /** Maximum of concurrent requests of one execution in this process. Default: `maxGitRequestsAtOnce`. */
  readonly maxInFlight?: number;
  /** When the service closes, requests in flight may continue for this time, milliseconds. Default: 5,000. */
  readonly drainMs?: number;
}

interface Admitted {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly wanted: GitRequest | LfsRequest;
  readonly holder: RunSession;
  readonly chosen: UsableCredential;
  readonly ownHeaders: Readonly<Record<string, string>>;
}

/** git shows a text body of an error as `remote: …`. */
const tell = (reply: FastifyReply, status: number, message: string): FastifyReply =>
  reply.code(status).header('content-type', 'text/plain; charset=utf-8').send(`${message}\n`);

const answerHeaders = ['content-type', 'content-length', 'content-encoding', 'cache-control', 'expires', 'pragma'];

/** The parts of a git gateway that its requests share. */
interface OpenGitGateway {
  readonly deps: GitGatewayDeps;
  readonly codeHost: ReturnType<typeof openCodeHost>;
  readonly inFlight: ReturnType<typeof trackInFlight>;
}

/**
 * Registers the git gateway: `/api/v1/gateway/git/{owner}/{repo}.git/…`, smart HTTP and Git LFS in both directions, for the repositories
 * of the run's environment. The run token is the bearer key or the password. The credential of the code host never leaves the service.
 */
export async function registerGitGateway(app: FastifyInstance, deps: GitGatewayDeps): Promise<void> {
  const codeHost = openCodeHost();
  const inFlight = trackInFlight();
  const gateway: OpenGitGateway = { deps, codeHost, inFlight };
  const places = makePlaces(deps.maxInFlight ?? maxGitRequestsAtOnce);
  app.addHook('preClose', async () => {
    await inFlight.drain(deps.drainMs ?? 5_000);
    codeHost.close();
  });
  await app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    // Packs are streamed: no body is read here.
    scope.addContentTypeParser('*', (_request, _payload, done) => done(null));
    scope.route({ method: ['GET', 'POST', 'PUT'], url: `${gitGatewayPath}/*`, logLevel: 'silent', handler });
  });

  async function handler(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const token = runTokenOf(request.headers, undefined);
    const holder = token === undefined ? null : await deps.authenticateRunToken(token);
    if (holder === null) {
      reply.header('www-authenticate', 'Basic realm="runyard", charset="UTF-8"');
      return tell(reply, 401, 'A valid run token is needed.');
    }
    const leave = places.enter(holder.executionId);
    if (leave === undefined) {
      reply.header('retry-after', String(busyRetrySeconds)).header('connection', 'close');
      return tell(reply, 429, 'Too many git requests of this run are in flight. Send it again later.');
    }
    // The answer of every request emits `close`: after the answer was sent, or after the client disconnected.
    reply.raw.once('close', leave);
    if (reply.raw.destroyed) leave();
    const [path = '', query = ''] = (request.raw.url ?? '').split('?');
    const parameters = new URLSearchParams(query);
    const wanted = gitRequestOf(request.method, path, parameters) ?? lfsRequestOf(request.method, path, parameters);
    if (wanted === undefined)
      return tell(reply, 404, 'The gateway speaks smart HTTP and Git LFS only: clone, fetch and push.');
    const { owner, repo } = wanted.repository;
    const allowed = await deps.repositoriesOf(holder.executionId);
    if (!allowed.some((each) => each.owner === owner && each.repo === repo)) {
      return tell(reply, 403, `${owner}/${repo} is not a repository of this run's environment.`);
    }
    const chosen = await deps.credentialFor(holder, wanted.repository);
    if (chosen.kind === 'unusable') return tell(reply, 403, chosen.message);
    if (chosen.kind === 'unavailable') return tell(reply, 502, chosen.message);
    const ownHeaders: Record<string, string> = {};
    for (const [name, value] of Object.entries(reply.getHeaders())) ownHeaders[name] = String(value);
    reply.hijack();
    const admitted = { request, reply, holder, ownHeaders, chosen };
    const relayed =
      'service' in wanted ? relay(gateway, { ...admitted, wanted }) : relayLfs(gateway, { ...admitted, wanted });
    const work = relayed.catch((error: unknown) => {
      deps.log.error({ err: error, run_id: holder.runId }, 'the git gateway failed');
      reply.raw.destroy();
    });
    inFlight.track(work);
    return reply;
  }
}

/** Answers a request of Git LFS. */
async function relayLfs(
  { deps, inFlight }: OpenGitGateway,
  admitted: Admitted & { readonly wanted: LfsRequest },
): Promise<void> {
  const { reply, wanted, holder: session, chosen } = admitted;
  const credential = chosen.kind === 'credential' ? chosen.credential : undefined;
  const host = { base: codeHostUrl(deps.codeHostUrl, wanted.repository), credential };
  const limit = deps.maxPushBytes ?? maxPushBytes;
  const signal = AbortSignal.any([closedSignal(reply.raw), inFlight.signal]);
  const { status, why } = await answerLfs({ ...deps, limit }, { ...admitted, session, host, signal });
  const repository = `${wanted.repository.owner}/${wanted.repository.repo}`;
  deps.log.info({ run_id: session.runId, repository, step: wanted.kind, status, why }, 'Git LFS request');
}

/** Sends a request of git to the code host, and its answer to the client. */
async function relay(
  { deps, codeHost, inFlight }: OpenGitGateway,
  admitted: Admitted & { readonly wanted: GitRequest },
): Promise<void> {
  const { reply, wanted, holder, chosen } = admitted;
  const credential = chosen.kind === 'credential' ? chosen.credential : undefined;
  const fields = {
    run_id: holder.runId,
    repository: `${wanted.repository.owner}/${wanted.repository.repo}`,
    service: wanted.service,
    step: wanted.step,
  };
  const signal = AbortSignal.any([closedSignal(reply.raw), inFlight.signal]);
  const base = codeHostUrl(deps.codeHostUrl, wanted.repository);
  const { raw } = admitted.request;
  const limit = deps.maxPushBytes ?? maxPushBytes;
  const refuse = ({ status, contentType, body, why, isWaiting }: AnsweredPush): void => {
    if (reply.raw.destroyed) return;
    deps.log.info({ ...fields, status, why }, 'push refused');
    const waiting = isWaiting ? { [waitingHeader]: 'waiting' } : {};
    const headers = { ...admitted.ownHeaders, ...waiting, 'content-type': contentType, connection: 'close' };
    reply.raw.writeHead(status, headers).end(body);
  };
  const asked = { session: holder, repository: wanted.repository, base, chosen, request: raw, limit, signal };
  const isPush = wanted.service === 'git-receive-pack' && wanted.step === 'rpc';
  const push = isPush ? await admitPush(deps, asked) : undefined;
  if (push?.kind === 'answer') return refuse(push);
  const answer = await codeHost.send({
    base,
    wanted,
    headers: push?.headers ?? raw.headers,
    body: push?.body ?? raw,
    limit,
    signal,
    ...(credential && { credential }),
  });
  const stopped = answer.kind === 'failed' ? await push?.stopped(answer.status === 413) : undefined;
  if (stopped !== undefined) return refuse(stopped);
  if (answer.kind === 'answer' && answer.response.statusCode === 401 && chosen.kind === 'credential') chosen.refused();
  const fault = faultOf(answer, wanted, chosen);
  if (answer.kind === 'failed' || fault !== undefined) {
    if (answer.kind === 'answer') answer.response.destroy();
    await push?.failed(fault?.status === 403 || fault?.status === 404 ? fault.message : undefined);
    if (reply.raw.destroyed || fault === undefined) return;
    deps.log.warn({ ...fields, status: fault.status, fault: fault.message }, 'git request failed');
    // Close the connection, because the unread rest of the push would block it for the next request.
    const headers = { ...admitted.ownHeaders, 'content-type': 'text/plain; charset=utf-8', connection: 'close' };
    reply.raw.writeHead(fault.status, headers).end(`${fault.message}\n`);
    return;
  }
  const { response } = answer;
  const headers = { ...admitted.ownHeaders };
  for (const name of answerHeaders) {
    const value = response.headers[name];
    if (typeof value === 'string') headers[name] = value;
  }
  reply.raw.writeHead(response.statusCode ?? 502, headers);
  const body = push?.watch(response) ?? response;
  const how = await passOn(response, body, reply.raw, { silenceMs: codeHost.silenceMs, hangUpMs: 0 }, () => {});
  deps.log.info({ ...fields, how }, 'git request');
}

/** Returns the status and the sentence for the agent if the code host's answer must not be forwarded; undefined: forward the answer. */
function faultOf(
  answer: CodeHostAnswer,
  wanted: GitRequest,
  chosen: UsableCredential,
): { status: number; message: string } | undefined {
  const name = `${wanted.repository.owner}/${wanted.repository.repo}`;
  if (answer.kind === 'failed') return { status: answer.status, message: `The code host ${answer.message}.` };
  const status = answer.response.statusCode ?? 502;
  if (status === 200 || status === 304) return undefined;
  if (status === 401 || status === 403) {
    // A 401 would make git ask for a password, which the sandbox does not have.
    const host = 'The code host (RUNYARD_CODE_HOST_URL)';
    if (chosen.kind === 'credential')
      return { status: 403, message: `${host} refused the stored credential for ${name}.` };
    const why =
      chosen.withheld === undefined
        ? ', and Runyard has none: store one with bin/runyard code-hosts add.'
        : `. ${chosen.withheld}`;
    return { status: 403, message: `${host} asks for a credential for ${name}${why}` };
  }
  if (status === 404)
    return { status: 404, message: `The code host (RUNYARD_CODE_HOST_URL) has no repository ${name}, or hides it.` };
  if (status >= 300 && status < 400)
    return { status: 502, message: `The code host moved ${name} to an address that Runyard does not follow.` };
  return { status: status >= 500 ? 502 : status, message: `The code host answered ${status} for ${name}.` };
}
