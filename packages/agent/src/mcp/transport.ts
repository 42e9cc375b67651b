import { StreamableHTTPClientTransport, type Transport } from '@modelcontextprotocol/client';
import type { TaskMcpServer } from '@runyard/contract/agent/agent-protocol';
import type { ServiceConnection } from '../service/connection.ts';
import { type Fetch, modelFetch } from '../service/model-fetch.ts';
import { keepMcpSessions } from './kept-session.ts';
import type { RunMcpOptions } from './servers.ts';
import { stdioServer } from './stdio-transport.ts';

/** A connection to a server, which the caller must still open, and a function that returns the end of the server's output. */
export interface ServerTransport {
  readonly transport: Transport & { readonly ended?: string | undefined };
  lastOutput(): string;
}

/**
 * Settings for a sandbox without a network. With these settings, package managers report an unreachable host at once and not after a
 * minute.
 */
const failsAtOnce = { npm_config_fetch_retries: '0', PIP_RETRIES: '0', UV_HTTP_RETRIES: '0' };

/** Returns the connection to a server: a process in the sandbox, or HTTP through the gateway of the service. */
export function transportOf(
  server: TaskMcpServer,
  { connection, workspace, env, network }: RunMcpOptions,
): ServerTransport {
  if (server.command === undefined) {
    const url = new URL(connection.serverRoot + (server.gateway_path ?? ''));
    const transport = new StreamableHTTPClientTransport(url, { fetch: gatewayFetch(connection) as typeof fetch });
    return { transport: transport as Transport, lastOutput: () => '' };
  }
  const stdio = stdioServer({
    command: server.command,
    args: server.args ?? [],
    cwd: workspace,
    // Put the marker last, so that `server.env` cannot replace it. Without the marker, a process of the server could outlive the run.
    env: {
      ...env,
      ...(network === 'none' ? failsAtOnce : {}),
      ...server.env,
      RUNYARD_AGENT_SOCKET: env.RUNYARD_AGENT_SOCKET,
    },
  });
  return { transport: stdio, lastOutput: stdio.lastOutput };
}

/** Maximum time without data from a server over HTTP. It is a little longer than the limit in the MCP gateway of the service. */
const silenceMs = 610_000;
/** Maximum number of bytes of one answer. */
const maxAnswerBytes = 16 * 1024 * 1024;

/**
 * Returns a `fetch` that reaches one HTTP server through the gateway, with the run token. The returned function opens no stream for
 * unsolicited messages, because the agent reads the list of tools only once.
 */
function gatewayFetch(connection: ServiceConnection): Fetch {
  const send = modelFetch({ ...connection, open: keepMcpSessions(connection.open) }, silenceMs, 'waits');
  return async (input, init = {}) => {
    if ((init.method ?? 'GET') === 'GET') return new Response(null, { status: 405 });
    const answer = await send(input, init);
    if (answer.body === null) return answer;
    let size = 0;
    const counted = answer.body.pipeThrough(
      new TransformStream<Uint8Array, Uint8Array>({
        transform(chunk, controller) {
          size += chunk.byteLength;
          if (size > maxAnswerBytes) controller.error(new Error(`the answer is larger than ${maxAnswerBytes} bytes`));
          else controller.enqueue(chunk);
        },
      }),
    );
    return new Response(counted, { status: answer.status, statusText: answer.statusText, headers: answer.headers });
  };
}
