import type { TaskMcpServer } from '@runyard/contract/agent/agent-protocol';
import { shorten } from '@runyard/contract/wire/shorten';
import type { NetworkAccess } from '../egress/forwarder.ts';
import { allowListAdvice, lacksHost } from '../egress/missing-network.ts';
import type { SetupSteps } from '../reporting/setup-steps.ts';
import type { ServiceConnection } from '../service/connection.ts';
import { SetupFailure } from '../setup-failure.ts';
import type { ConnectedServer, LeftOutTools, McpTool } from './connect-server.ts';
import type { McpLoopback } from './loopback.ts';
import { silence } from './silence.ts';

export interface RunMcpOptions {
  readonly connection: ServiceConnection;
  readonly workspace: string;
  /** Environment of all processes that the run starts. It contains the marker of the run and no credential. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The hosts that servers in the sandbox can reach. */
  readonly network: NetworkAccess;
  /** Command that starts this program. */
  readonly agentProgram: readonly [command: string, ...args: string[]];
  /** Timeout for the start of one server, including the list of its tools. */
  readonly startTimeoutMs: number;
}

/** The data that a harness needs to start a server or to connect to it. */
export type HarnessMcpServer =
  | {
      readonly name: string;
      readonly command: string;
      readonly args: readonly string[];
      readonly env: Readonly<Record<string, string>>;
    }
  | { readonly name: string; readonly url: string };

/** The MCP servers of a run. */
export interface RunMcp {
  /**
   * Starts each server and lists its tools, as steps of the setup. If the caller of the tools is the `agent`, the servers stay connected,
   * and `tools` has their tools. If it is the `harness`, the servers are stopped again, because the harness starts them itself. Throws a
   * `SetupFailure` that names the first server that failed.
   */
  start(
    servers: readonly TaskMcpServer[],
    options: { readonly use: 'agent' | 'harness'; readonly step: SetupSteps; readonly signal: AbortSignal },
  ): Promise<void>;
  readonly tools: readonly McpTool[];
  /** Servers with tools that the model does not get. */
  readonly leftOut: readonly (LeftOutTools & { readonly name: string })[];
  readonly forHarness: readonly HarnessMcpServer[];
  close(): Promise<void>;
}

/** Programs that download a server before they start it. */
const downloads = /(?:^|\/)(?:npx|npm|pnpm|pnpx|yarn|bunx|bun|uvx|uv|pipx|docker|deno)$/;

/**
 * Returns advice about a server that failed. Also looks at the server's command and not only at its output, because a program that
 * waits for an unreachable host often prints nothing.
 */
function adviceFor({ command, args = [] }: TaskMcpServer, network: NetworkAccess, said: string): string {
  const words = (command === undefined ? [] : [command, ...args]).flatMap((word) => word.split(/\s+/));
  const wantsHost = lacksHost(said, network) || words.some((word) => downloads.test(word)) || said.startsWith(silence);
  if (command === undefined || network === 'open' || !wantsHost)
    return 'Correct config.mcp_servers, or install the programs that the server needs in the sandbox, and run again.';
  const hosts =
    network === 'none'
      ? "The sandbox has no network, and a server that is downloaded when it starts, or that calls a host, needs a network: name the hosts in the environment's network.allowed_hosts, or the package manager in network.presets."
      : `If the server needs a host: ${allowListAdvice}`;
  return `${hosts} Or install the server in the sandbox's image or on the worker's machine, or give the url of a server that the service reaches.`;
}

export function runMcp(options: RunMcpOptions): RunMcp {
  let connected: readonly ConnectedServer[] = [];
  let leftOut: RunMcp['leftOut'] = [];
  let forHarness: readonly HarnessMcpServer[] = [];
  let loopback: McpLoopback | undefined;

  async function startOne(server: TaskMcpServer, step: SetupSteps, signal: AbortSignal): Promise<ConnectedServer> {
    const { connectServer } = await import('./connect-server.ts');
    const { transportOf } = await import('./transport.ts');
    const { transport, lastOutput } = transportOf(server, options);
    return await step('mcp_server', server.name, async (result) => {
      try {
        return await connectServer(server.name, transport, { signal, timeoutMs: options.startTimeoutMs });
      } catch (error) {
        signal.throwIfAborted();
        const reason = shorten(error instanceof Error ? error.message : String(error), 1_000);
        const tail = lastOutput();
        result.error = reason;
        if (tail !== '') result.output_tail = tail;
        const outputEnd = tail === '' ? '' : `\nEnd of its output:\n${tail.trimEnd()}`;
        throw new SetupFailure(
          `The MCP server ${shorten(server.name, 100)} failed: ${reason}.${outputEnd}\n${adviceFor(server, options.network, `${reason}\n${tail}`)}`,
        );
      }
    });
  }

  return {
    async start(servers, { use, step, signal }) {
      if (servers.length === 0) return;
      const failed = new AbortController();
      const over = AbortSignal.any([signal, failed.signal]);
      const started = await Promise.allSettled(
        servers.map(async (server) => {
          try {
            return await startOne(server, step, over);
          } catch (error) {
            // Do not wait for the other servers.
            failed.abort(error);
            throw error;
          }
        }),
      );
      const ready = started.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
      signal.throwIfAborted();
      if (failed.signal.aborted || use === 'harness') await Promise.all(ready.map((each) => each.close()));
      failed.signal.throwIfAborted();
      leftOut = ready.flatMap((each, index) =>
        each.leftOut.tools === 0 ? [] : [{ name: servers[index]?.name ?? '', ...each.leftOut }],
      );
      if (use === 'agent') {
        connected = ready;
        return;
      }
      if (servers.some(({ gateway_path }) => gateway_path !== undefined))
        loopback = await (await import('./loopback.ts')).startMcpLoopback(options.connection);
      const [program, ...first] = options.agentProgram;
      forHarness = servers.map(({ name, command, args = [], env = {}, gateway_path = '' }, index) => {
        const isOdd = ready[index]?.isOdd === true;
        if (command === undefined) return { name, url: loopback?.urlOf(gateway_path, { repairsTools: isOdd }) ?? '' };
        // The harness starts a usual server itself. The command `mcp-server` starts an odd server and repairs its list of tools.
        return isOdd
          ? { name, command: program, args: [...first, 'mcp-server', command, ...args], env }
          : { name, command, args, env };
      });
    },
    get tools() {
      return connected.flatMap(({ tools }) => tools);
    },
    get leftOut() {
      return leftOut;
    },
    get forHarness() {
      return forHarness;
    },
    async close() {
      loopback?.close();
      await Promise.all(connected.map((each) => each.close().catch(() => {})));
    },
  };
}
