import { StreamableHTTPClientTransport, type Transport } from '@modelcontextprotocol/client';
import type { TaskMcpServer } from '@runyard/contract/agent/agent-protocol';
import { gatewayFetch } from './gateway-fetch.ts';
import type { RunMcpOptions } from './servers.ts';
import { stdioServer } from './stdio-transport.ts';

/** A connection to a server, not opened yet, and the end of the server's output. */
export interface ServerTransport {
  readonly transport: Transport & { readonly ended?: string | undefined };
  lastOutput(): string;
}

/** Without a network, package managers give up at the first host that they cannot reach, and say so, instead of after a minute. */
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
    // The marker comes last: without it a process of the server could outlive the run.
    env: {
      ...env,
      ...(network === 'none' ? failsAtOnce : {}),
      ...server.env,
      RUNYARD_AGENT_SOCKET: env.RUNYARD_AGENT_SOCKET,
    },
  });
  return { transport: stdio, lastOutput: stdio.lastOutput };
}
