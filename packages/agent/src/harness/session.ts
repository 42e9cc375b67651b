import type { InitializeResponse, LoadSessionRequest, McpServer } from '@agentclientprotocol/sdk';
import { type AgentLink, protocolVersion } from '../acp/agent-link.ts';
import { asObject, asString } from '../acp/tool-output.ts';
import type { HarnessMcpServer, RunMcp } from '../mcp/servers.ts';
import { errorText } from './error-text.ts';
import { type HarnessAnswers, HarnessFailure } from './harness-answers.ts';
import type { HarnessProfile } from './profile.ts';
import type { ReplayFilter } from './replay-filter.ts';

export interface SessionOptions {
  readonly profile: HarnessProfile;
  readonly link: Pick<AgentLink, 'initialize' | 'newSession' | 'loadSession' | 'setMode'>;
  readonly answers: HarnessAnswers;
  readonly replay: ReplayFilter;
  readonly mcp: Pick<RunMcp, 'forHarness'>;
  /** Timeout for each of `initialize`, `session/new` and `session/load`. */
  readonly startTimeoutMs: number;
}

export interface OpenedSession {
  readonly sessionId: string;
  /** True: the harness has loaded the session and knows the conversation so far. */
  readonly loaded: boolean;
  /** The MCP servers that the harness does not get, each with the reason. */
  readonly skipped: readonly object[];
  /** The reason why an earlier session was not loaded. */
  readonly notLoaded?: string | undefined;
}

/** The one ACP session that the agent has with a harness. */
export interface HarnessSession {
  /** The answer of the harness to `initialize`. */
  readonly initialised: Promise<InitializeResponse>;
  /** Undefined until `open` has opened the session. */
  readonly id: string | undefined;
  /** The id of the session; undefined if another process of the harness cannot load the session. */
  readonly loadableId: string | undefined;
  /** Sets the harness' own mode for a turn, if the harness has such a mode. Returns a reason if the harness refused it. */
  setPlanMode(isPlan: boolean): Promise<string | undefined>;
  /** Opens the session in the first turn. Loads the session `load` if possible, and otherwise creates a new session. */
  open(turn: { readonly cwd: string; readonly load?: string | undefined }): Promise<OpenedSession>;
}

/** Initialises the harness. `initialised` and `open` report a failure. */
export function startSession(options: SessionOptions): HarnessSession {
  const { profile, link, answers, replay, mcp, startTimeoutMs } = options;
  const { name: harness, capabilities } = profile;
  let id: string | undefined;
  let canLoad = false;
  let modes: unknown;
  let isInPlanMode = false;

  const initialised = answers(
    'initialize',
    link.initialize({
      protocolVersion,
      clientInfo: { name: 'runyard', version: '1' },
      // The agent offers the harness neither access to files (`fs`) nor a terminal, because version 2 of the protocol removes both. A
      // harness may send terminal output in `_meta` instead.
      clientCapabilities: { _meta: { terminal_output: true, terminal_output_delta: true } },
    }),
    startTimeoutMs,
  );
  initialised.catch(() => {});

  /** Loads an earlier session. Returns the reason if the session cannot be loaded. */
  async function loadSession(request: LoadSessionRequest): Promise<string | undefined> {
    if (!canLoad) return `The harness ${harness} does not load sessions any more.`;
    replay.begin(request.sessionId);
    try {
      modes = (await answers('session/load', link.loadSession(request), startTimeoutMs)).modes;
      replay.end();
      return undefined;
    } catch (error) {
      return errorText(error);
    }
  }

  async function openFirst({ cwd, load }: { readonly cwd: string; readonly load?: string | undefined }) {
    const agent = await initialised;
    if (agent.protocolVersion !== protocolVersion) {
      throw new HarnessFailure(
        `The harness ${harness} speaks version ${agent.protocolVersion} of the Agent Client Protocol; version ${protocolVersion} is needed.`,
      );
    }
    const { servers: mcpServers, skipped } = mcpServersOf(mcp.forHarness, {
      http: agent.agentCapabilities?.mcpCapabilities?.http === true,
    });
    canLoad = capabilities.loadsSessions && agent.agentCapabilities?.loadSession === true;
    const notLoaded = load === undefined ? undefined : await loadSession({ sessionId: load, cwd, mcpServers });
    if (load !== undefined && notLoaded === undefined) return { sessionId: load, skipped, loaded: true };
    const created = await answers('session/new', link.newSession({ cwd, mcpServers }), startTimeoutMs);
    const { sessionId } = created;
    modes = created.modes;
    return { sessionId, skipped, loaded: false, notLoaded };
  }

  return {
    initialised,
    get id() {
      return id;
    },
    get loadableId() {
      return canLoad ? id : undefined;
    },
    async setPlanMode(isPlan) {
      const { plan, usual } = modeIdsOf(modes);
      const modeId = isPlan ? plan : usual;
      if (id === undefined || plan === undefined || modeId === undefined || isPlan === isInPlanMode || !link.setMode)
        return undefined;
      try {
        await answers('session/set_mode', link.setMode({ sessionId: id, modeId }), startTimeoutMs);
        isInPlanMode = isPlan;
        return undefined;
      } catch (error) {
        return errorText(error);
      }
    },
    async open(turn) {
      const opened: OpenedSession =
        id === undefined ? await openFirst(turn) : { sessionId: id, skipped: [], loaded: true };
      id = opened.sessionId;
      return opened;
    },
  };
}

/** Returns the id of the harness' mode for plans, and of the mode in which its session began. `modes` is untrusted JSON. */
function modeIdsOf(modes: unknown): { readonly plan?: string | undefined; readonly usual?: string | undefined } {
  const state = asObject(modes);
  const available = Array.isArray(state?.availableModes) ? state.availableModes : [];
  const plan = available.find((mode) => asObject(mode)?.id === 'plan') === undefined ? undefined : 'plan';
  return { plan, usual: asString(state?.currentModeId) };
}

/** Returns the MCP servers of a run in the format of ACP, and the servers that the harness cannot use, each with the reason. */
function mcpServersOf(
  given: readonly HarnessMcpServer[],
  capabilities: { readonly http: boolean },
): { servers: McpServer[]; skipped: { name: string; reason: string }[] } {
  const servers: McpServer[] = [];
  const skipped: { name: string; reason: string }[] = [];
  for (const server of given) {
    const { name } = server;
    if ('command' in server) {
      const env = Object.entries(server.env).map(([variable, value]) => ({ name: variable, value }));
      servers.push({ name, command: server.command, args: [...server.args], env });
    } else if (capabilities.http) servers.push({ type: 'http', name, url: server.url, headers: [] });
    else skipped.push({ name, reason: 'the harness cannot use MCP servers over HTTP' });
  }
  return { servers, skipped };
}
