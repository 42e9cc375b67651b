import { Readable } from 'node:stream';
import { makeAddressRules } from '@runyard/system/address-rules';
import { createByteMask } from '@runyard/system/redaction/mask-bytes';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { closedSignal } from '../../../platform/bodies/answered-client.ts';
import type { BodyBudget } from '../../../platform/bodies/body-budget.ts';
import { makePlaces } from '../../../platform/bodies/places.ts';
import { holdBody } from '../../../platform/bodies/request-bodies.ts';
import type { Resolve } from '../../../platform/check-address.ts';
import { busyRetrySeconds } from '../../../platform/serving/refusal.ts';
import type { ServerOfExecution } from '../../../runs/runs/read/mcp-server.ts';
import { mcpGatewayPath } from '../../../team/mcp/gateway-path.ts';
import type { RunMcpServer } from '../../../team/mcp/of-run.ts';
import type { RunTokenHolder } from '../../../team/usage/model-usage.ts';
import { trackInFlight } from '../in-flight.ts';
import { runTokenOf } from '../models/credentials.ts';
import type { GatewayLog } from '../models/handle-request.ts';
import { passOn } from '../models/pass-on.ts';
import { headersToSandbox, headersToServer, secretsOf } from './mcp-headers.ts';
import { type McpAnswer, sendToMcpServer } from './mcp-upstream.ts';
import { explainNoMcp } from './no-mcp.ts';

export interface McpGatewayDeps {
  /** Value of RUNYARD_ALLOW_PRIVATE_NETWORKS. */
  readonly allowedNetworks: readonly string[];
  authenticateRunToken(token: string): Promise<RunTokenHolder | null>;
  /** Returns the MCP server that the execution's run calls `name`; null if the run has no such server. */
  serverOf(executionId: string, name: string): Promise<ServerOfExecution | null>;
  readonly resolve: Resolve;
  readonly bodies: BodyBudget;
  readonly log: GatewayLog;
  readonly limits?: Partial<McpGatewayLimits>;
  /** When the service closes, requests in flight may continue for this time, milliseconds. Default: 5,000. */
  readonly drainMs?: number;
}

/** Bounds of one request to an MCP server. */
export interface McpGatewayLimits {
  readonly maxBodyBytes: number;
  readonly maxAnswerBytes: number;
  /** Maximum of concurrent requests of one execution in this process, streams included. A request counts even while its body is
   * arriving. */
  readonly maxInFlight: number;
  readonly connectMs: number;
  /** Longest time until the answer begins, and longest time between two pieces of the answer. */
  readonly silenceMs: number;
  /** Longest time for the whole answer. */
  readonly answerMs: number;
}

const defaultLimits: McpGatewayLimits = {
  maxBodyBytes: 4 * 1024 * 1024,
  maxAnswerBytes: 16 * 1024 * 1024,
  maxInFlight: 32,
  connectMs: 10_000,
  silenceMs: 600_000,
  answerMs: 3_600_000,
};

const unread = {
  busy: { status: 429, message: 'too many requests of this run are in flight; send this request again later' },
  too_large: { status: 413, message: 'the request is larger than the gateway accepts' },
  too_slow: { status: 408, message: 'the request arrived too slowly' },
  cut: { status: 400, message: 'the request cannot be read' },
} as const;

/** Returns the body of an error in the form of JSON-RPC. MCP clients show the error's message. */
const errorBody = (message: string): string =>
  JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: -32_000, message } });

/** Creates the parts of an MCP gateway that its requests share. */
function openGateway(deps: McpGatewayDeps) {
  const limits = { ...defaultLimits, ...deps.limits };
  const upstream = {
    rules: makeAddressRules(deps.allowedNetworks),
    allowsPrivate: deps.allowedNetworks.length > 0,
    resolve: deps.resolve,
    answerMs: limits.silenceMs,
    connectMs: limits.connectMs,
  };
  return { deps, limits, upstream, inFlight: trackInFlight() };
}

type OpenMcpGateway = ReturnType<typeof openGateway>;

/**
 * Registers the MCP gateway. `/api/v1/gateway/mcp/{name}` forwards requests of Streamable HTTP to an MCP server of the run that the token
 * belongs to; `name` is the server's name in the run's configuration. The service adds the configured headers of the server. In the
 * server's answers, it masks the secrets of these headers, so that the secrets never reach the sandbox.
 */
export async function registerMcpGateway(app: FastifyInstance, deps: McpGatewayDeps): Promise<void> {
  const gateway = openGateway(deps);
  const { limits, inFlight } = gateway;
  const places = makePlaces(limits.maxInFlight);
  app.addHook('preClose', () => inFlight.drain(deps.drainMs ?? 5_000));
  await app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    // Fastify does not read the body, because the handler reads it.
    scope.addContentTypeParser('*', (_request, _payload, done) => done(null));
    const method = ['GET', 'POST', 'DELETE'];
    scope.route({ method, url: `${mcpGatewayPath}/:name`, logLevel: 'silent', handler });
  });

  const refuse = (reply: FastifyReply, status: number, message: string): FastifyReply =>
    reply.code(status).header('content-type', 'application/json').send(errorBody(message));

  async function handler(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const token = runTokenOf(request.headers, undefined);
    const holder = token === undefined ? null : await deps.authenticateRunToken(token);
    if (token === undefined || holder === null) return refuse(reply, 401, 'a valid run token is needed');
    const { executionId, teamId } = holder;
    const { name } = request.params as { readonly name: string };
    const server = await deps.serverOf(executionId, name);
    if (server === null || server.kind === 'command')
      return refuse(reply, 404, 'the run has no MCP server over HTTP of this name');
    if (server.kind === 'unusable') {
      deps.log.warn({ run_id: holder.runId, mcp_server: name, fault: server.message }, 'MCP request failed');
      return refuse(reply, 502, `the MCP server cannot be used: ${server.message}`);
    }
    if (server.kind !== 'url')
      return refuse(reply, 404, 'the stored MCP server was deleted, or its headers cannot be opened any more');
    const leave = places.enter(executionId);
    if (leave === undefined) {
      reply.header('retry-after', String(busyRetrySeconds)).header('connection', 'close');
      return refuse(reply, 429, unread.busy.message);
    }
    // The answer of every request emits `close`: after the answer was sent, or after the client disconnected.
    reply.raw.once('close', leave);
    if (reply.raw.destroyed) leave();
    let body: Buffer | undefined;
    if (request.method === 'POST') {
      const owner = { teamId, executionId };
      const { maxBodyBytes: maxBytes } = limits;
      const received = await holdBody(deps.bodies, { request: request.raw, response: reply.raw, owner, maxBytes });
      if (received.kind !== 'body') {
        reply.header('connection', 'close');
        if (received.kind === 'busy') reply.header('retry-after', String(busyRetrySeconds));
        const { status, message } = unread[received.kind];
        return refuse(reply, status, message);
      }
      body = received.bytes;
      // The execution may have ended while the body arrived.
      if ((await deps.authenticateRunToken(token)) === null) return refuse(reply, 401, 'a valid run token is needed');
    }
    const ownHeaders: Record<string, string> = {};
    for (const [header, value] of Object.entries(reply.getHeaders())) ownHeaders[header] = String(value);
    reply.hijack();
    const fields = { run_id: holder.runId, mcp_server: name, method: request.method };
    const work = relay(gateway, { request, reply, server, body, ownHeaders, fields }).catch((error: unknown) => {
      deps.log.error({ ...fields, err: error }, 'the MCP gateway failed');
      reply.raw.destroy();
    });
    inFlight.track(work);
    return reply;
  }
}

/** A request that the gateway forwards to an MCP server. */
interface ForwardedRequest {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly server: Extract<RunMcpServer, { kind: 'url' }>;
  readonly body: Buffer | undefined;
  readonly ownHeaders: Readonly<Record<string, string>>;
  readonly fields: object;
}

/** Sends the request to the MCP server, and its answer without the secrets of the headers to the client. */
async function relay({ deps, limits, upstream, inFlight }: OpenMcpGateway, sent: ForwardedRequest): Promise<void> {
  const { request, server, body, ownHeaders, fields } = sent;
  const client = sent.reply.raw;
  const disconnect = closedSignal(client);
  if (disconnect.aborted) return;
  const { url } = server;
  const { method } = request;
  const headers = headersToServer(request.headers, server.headers);
  const signal = AbortSignal.any([disconnect, inFlight.signal, AbortSignal.timeout(limits.answerMs)]);
  const answer = await sendToMcpServer({ url, method, headers, ...(body ? { body } : {}) }, upstream, signal);
  const fault =
    faultOf(answer) ??
    (answer.kind === 'answer'
      ? await explainNoMcp(answer.response, { url, method, headers, upstream, signal })
      : undefined);
  if (answer.kind === 'failed' || fault !== undefined) {
    if (answer.kind === 'answer') answer.response.destroy();
    if (client.destroyed) return;
    deps.log.warn({ ...fields, fault }, 'MCP request failed');
    client
      .writeHead(502, { ...ownHeaders, 'content-type': 'application/json' })
      .end(errorBody(`the MCP server cannot be used: ${fault}`));
    return;
  }
  const { response } = answer;
  // A server may repeat the headers of a request in the answer, and these headers must not reach the sandbox.
  const mask = createByteMask([...secretsOf(server.headers), ...server.secrets]);
  client.writeHead(response.statusCode ?? 502, { ...ownHeaders, ...headersToSandbox(response.headers, mask) });
  client.flushHeaders();
  let size = 0;
  const masked = Readable.from(mask.stream(response), { objectMode: false });
  const how = await passOn(response, masked, client, { silenceMs: limits.silenceMs, hangUpMs: 0 }, (bytes) => {
    size += bytes.byteLength;
    if (size > limits.maxAnswerBytes) response.destroy();
  });
  deps.log.info({ ...fields, status: response.statusCode, bytes: size, how }, 'MCP request');
}

/** Returns why an answer is not forwarded. A 401 would make clients ask for a credential, which only the service has. */
function faultOf(answer: McpAnswer): string | undefined {
  if (answer.kind === 'failed') return answer.message;
  const { statusCode: status = 502, headers } = answer.response;
  if (status === 401 || status === 403) return `it refused the stored headers with status ${status}`;
  const encoding = headers['content-encoding'];
  if (encoding !== undefined && encoding !== 'identity')
    return 'it compressed its answer although the request did not allow compression';
  return undefined;
}
