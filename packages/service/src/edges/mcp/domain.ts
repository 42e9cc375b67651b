/** The MCP servers of the service: streamable HTTP without sessions, so any service process answers any request. */
import { teamReads } from '@runyard/contract/wire/access';
import { apiPrefix } from '@runyard/contract/wire/route';
import { isLoopback } from '@runyard/system/address-rules';
import type { FastifyRequest } from 'fastify';
import { closedSignal } from '../../platform/bodies/answered-client.ts';
import { makePlaces } from '../../platform/bodies/places.ts';
import { invalid, refuse } from '../../platform/serving/refusal.ts';
import type { ExecutionDeps } from '../../runs/executions/deps.ts';
import type { Edge } from '../edge.ts';
import type { Authorizer } from '../http/server/authorize.ts';
import { waitingSignals } from '../http/server/closing.ts';
import { bothTypes, fitted } from './accept.ts';
import { factoryTools } from './factory-tools.ts';
import { operationsFor } from './operations.ts';
import { answerMcp } from './server.ts';
import { serviceTools } from './service-tools.ts';
import type { Tool } from './tool.ts';
import { makeToolset, type Toolset } from './toolset.ts';

/** Largest number of concurrent requests of one key in this process. */
export const maxInFlight = 16;
/** This is enough for a prompt, which has at most 1 MB of UTF-8 and may take twice as much in JSON. */
const bodyLimit = 3 * 1024 * 1024;

interface McpServerDeps {
  readonly executionDeps: Pick<ExecutionDeps, 'notices' | 'log'>;
  baseUrl(): string;
}

/** Returns a function that makes the tools at its first call, and not when the service starts, because the schemas of the tools would take
 * a quarter of the start time. */
function madeLate(tools: readonly Tool[]): () => Toolset {
  let toolset: Toolset | undefined;
  return () => {
    toolset ??= makeToolset(tools);
    return toolset;
  };
}

const servers = [
  { url: '/mcp', title: 'Runyard', toolset: madeLate(serviceTools) },
  { url: `${apiPrefix}/mcp/factory`, title: 'Runyard factories', toolset: madeLate(factoryTools) },
];

/**
 * Returns whether a request with this `Origin` is accepted. Requests from pages of other origins are refused. The Host header is not
 * checked instead, because such a page can use any name for the address of this service (DNS rebinding). Requests without `Origin` come
 * from programs that are not browsers, and are accepted.
 */
export function isAllowedOrigin(origin: string | undefined, baseUrl: string): boolean {
  if (origin === undefined) return true;
  const from = URL.parse(origin);
  const own = URL.parse(baseUrl);
  if (!from || !own) return false;
  return from.origin === own.origin || (isLoopback(from) && isLoopback(own) && from.port === own.port);
}

/** Headers of a request that the MCP protocol defines or uses. The SDK gets only these headers. */
const protocolHeaders = ['content-type', 'mcp-protocol-version', 'mcp-method', 'mcp-name'];

function webRequest(request: FastifyRequest, baseUrl: string, signal: AbortSignal): Request {
  const headers = new Headers({ accept: bothTypes });
  for (const name of protocolHeaders) {
    const value = request.headers[name];
    if (typeof value === 'string') headers.set(name, value);
  }
  return new Request(new URL(request.url, baseUrl), { method: 'POST', headers, signal });
}

/** The MCP servers at `/mcp` and `/api/v1/mcp/factory`. */
export const mcpServerDomain = ({ executionDeps, baseUrl }: McpServerDeps): Edge => ({
  name: 'mcp_server',
  endpoints: async (app) => {
    const { notices, log } = executionDeps;
    const authorizer = app.getDecorator<Authorizer>('authorizer');
    const places = makePlaces(maxInFlight);
    const waitingOf = waitingSignals(app);
    for (const { url, title, toolset } of servers) {
      // Only programs call these servers, so a browser session is not accepted.
      const onRequest = authorizer.forRoute({ ...teamReads, session: false });
      app.post(url, { bodyLimit, onRequest }, async (request, reply) => {
        const { principal } = authorizer.callerOf(request);
        if (!principal) throw refuse('authentication_required');
        if (!isAllowedOrigin(request.headers.origin, baseUrl()))
          throw refuse('not_authorized', {
            detail: 'Pages of other origins cannot use the MCP server. Programs leave out the header Origin.',
          });
        if (Array.isArray(request.body))
          throw invalid([{ path: '', message: 'must be one JSON-RPC message, not a list of messages' }]);
        const leave = places.enter(principal.keyId);
        if (!leave)
          throw refuse('resource_unavailable', {
            detail: `This key has ${maxInFlight} MCP requests in progress. Send the request again when one of them has ended.`,
            headers: { 'retry-after': '2' },
          });
        reply.raw.once('close', leave);
        if (reply.raw.destroyed) leave();
        const closed = closedSignal(reply.raw);
        const signal = AbortSignal.any([closed, waitingOf(request)]);
        const caller = { principal, call: operationsFor(app, request), notices, signal };
        const parts = { title, toolset: toolset(), log };
        const message = webRequest(request, baseUrl(), closed);
        const answer = await fitted(request.headers.accept, await answerMcp(parts, caller, message, request.body));
        reply.header('cache-control', 'no-store').header('x-accel-buffering', 'no');
        return await reply.send(answer);
      });
    }
  },
});
