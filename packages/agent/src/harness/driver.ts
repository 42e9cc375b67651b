import type { ContentBlock, InitializeResponse, LoadSessionRequest } from '@agentclientprotocol/sdk';
import type { AgentEventBody } from '@runyard/contract/agent-protocol';
import type { AmbientAgentConfig } from '@runyard/contract/config';
import { type AgentLink, type HarnessExit, type LinkEvents, protocolVersion } from '../acp/agent-link.ts';
import type { HarnessOutcome } from '../acp/outcome.ts';
import type { Approvals } from '../approvals/approvals.ts';
import { type ImageLimits, imageContent, type PromptImage } from '../images/images.ts';
import { newId } from '../new-id.ts';
import { errorText } from './error-text.ts';
import { mcpServersOf } from './mcp-servers.ts';
import { optionFor } from './permissions.ts';
import { type SessionUpdates, sessionUpdates } from './session-updates.ts';
import { outcomeOf } from './turn-outcome.ts';

export interface DriverOptions {
  /** Name of the harness in messages. */
  harness: string;
  /** True for the harness in this process, whose verdict about its own end is believed. */
  builtin: boolean;
  start: (events: LinkEvents) => AgentLink;
  emit: (event: AgentEventBody) => void;
  /** Resolves when the reporter has room. */
  ready: () => Promise<void>;
  config: AmbientAgentConfig;
  imageLimits: ImageLimits;
  approvals: Approvals;
  /** For `initialize` and `session/new` each. */
  startTimeoutMs?: number;
}

export interface Turn {
  cwd: string;
  stepId: string;
  /** `loaded`: the harness knows by itself what was said before. */
  prompt: (loaded: boolean) => ContentBlock[];
  /** Session of an earlier execution to go on with, where the harness can; of the first turn. */
  load?: string | undefined;
  /** Go behind the prompt where the harness takes images. */
  images: readonly PromptImage[];
  /** Called as the prompt is handed over. */
  onStarted: () => void;
  /** Called when everything of the turn was emitted, with the end of the last message; only after `onStarted`. */
  onEnded: (summary: string) => void;
}

export interface Driver {
  /** The session, where the harness can load it again in another process. */
  readonly loadableSession: string | undefined;
  /** Initialises the harness; a failure is kept and told by `run`. */
  readonly initialised: Promise<unknown>;
  /** Plays a turn, one after another; the first opens the session. */
  run(turn: Turn): Promise<HarnessOutcome>;
  /** False when its process has ended: it plays no further turn. */
  readonly isAlive: boolean;
  /** Resolves when the harness is gone. */
  readonly exited: Promise<HarnessExit>;
  /**
   * Asks the harness to end the turn that it plays; a further one can follow. A harness in a process of its own that has not ended the
   * turn after `graceMs` is killed, and the turn counts as interrupted.
   */
  interrupt(graceMs: number): void;
  /** Asks the harness to stop; `run` resolves as cancelled when it has, or when it is killed. */
  cancel(): void;
  kill(): Promise<void>;
}

interface OpenedSession {
  sessionId: string;
  /** MCP servers that the harness does not get. */
  skipped: readonly object[];
  loaded: boolean;
  /** Why an earlier session was not loaded. */
  notLoaded?: string | undefined;
}

/** A harness's failure, with the sentence that the run shows. */
class HarnessFailure extends Error {
  override name = 'HarnessFailure';
}

/** Drives one ACP v1 agent: starts it, opens a session, plays a turn, and turns all it says into events. */
export function driveHarness(options: DriverOptions): Driver {
  const { emit, harness, startTimeoutMs = 60_000 } = options;
  let stepId = '';
  let sessionId: string | undefined;
  let canLoad = false;
  /** What the harness repeats of this session is known already. */
  let replayed: string | undefined;
  let cancelled = false;
  let interrupted = false;
  /** Runs from an interrupt to the end of its turn. */
  let deadline: NodeJS.Timeout | undefined;
  let deadlineAt = Number.POSITIVE_INFINITY;
  /** Why the harness was killed in this turn. */
  let overdue: string | undefined;
  let isPlaying = false;
  /** Ends what waits for a person: the turn was cancelled or is over. */
  let turnEnded = new AbortController();
  const mcpNames = Object.keys(options.config.mcp_servers ?? {});
  const updates: SessionUpdates = sessionUpdates({ emit, stepId: () => stepId, mcpServers: mcpNames });

  const link = options.start({
    line: (line) => {
      if (!isReplay(line)) emit({ type: 'transcript', line });
    },
    ready: options.ready,
    update: (update, ofSession) => {
      if (replayed === undefined || ofSession !== replayed) updates.update(update);
    },
    // Rejects where nobody will answer any more, the turn having ended: the harness is told that it was cancelled.
    permission: (params) => permit(params).catch(() => undefined),
  });

  /** Waits for as long as it takes: nothing of the turn has a time limit meanwhile. */
  async function permit(params: Record<string, unknown>): Promise<string | undefined> {
    const asked = updates.permission(params.toolCall);
    const title = asked?.title ?? `something that ${harness} does not name`;
    const action = asked ?? { id: newId(), name: 'tool', category: 'integration' as const, input: {} };
    updates.hold(action.id);
    const verdict = await options.approvals.ask(
      { kind: 'permission', title, action, wordsAreTurn: true },
      turnEnded.signal,
    );
    const decision = verdict.decision === 'approve' ? 'approve' : 'deny';
    updates.release(action.id, decision);
    return optionFor(decision, params.options);
  }

  function isReplay(line: string): boolean {
    return replayed !== undefined && line.includes('"session/update"') && line.includes(JSON.stringify(replayed));
  }

  /** The harness's answer to `method`, or why there will be none: its death, its silence. */
  async function answer<T>(method: string, request: Promise<T>, timeoutMs?: number): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    const died = link.exited.then(({ description, stderrTail }) => {
      throw new HarnessFailure(
        `The harness ${harness} ${description} before it answered ${method}.${stderrTail.trim() === '' ? ' It printed nothing to standard error.' : ` End of its standard error:\n${stderrTail.trimEnd()}`}`,
      );
    });
    const silent = new Promise<never>((_, reject) => {
      if (timeoutMs === undefined) return;
      timer = setTimeout(
        () =>
          reject(
            new HarnessFailure(
              `The harness ${harness} was started but did not answer ${method} within ${Math.round(timeoutMs / 1000)} s. Check that its command speaks the Agent Client Protocol on standard input and output.`,
            ),
          ),
        timeoutMs,
      );
    });
    // A closing pipe rejects requests a moment before the exit is known, which says more.
    const answered = request.catch(async (error: unknown) => {
      if (link.closed.aborted) await Promise.race([died, new Promise((resolve) => setTimeout(resolve, 1_000))]);
      throw error;
    });
    try {
      return await Promise.race([answered, died, silent]);
    } catch (error) {
      if (error instanceof HarnessFailure) throw error;
      throw new HarnessFailure(`The harness ${harness} answered ${method} with an error: ${errorText(error)}`);
    } finally {
      clearTimeout(timer);
      died.catch(() => {});
      answered.catch(() => {});
    }
  }

  const initialised: Promise<InitializeResponse> = answer(
    'initialize',
    link.initialize({
      protocolVersion,
      clientInfo: { name: 'runyard', version: '1' },
      // No fs and no terminal: version 2 of the protocol drops them. Terminal output may come beside the protocol.
      clientCapabilities: { _meta: { terminal_output: true, terminal_output_delta: true } },
    }),
    startTimeoutMs,
  );
  initialised.catch(() => {});

  async function openSession({ cwd, load }: Turn): Promise<OpenedSession> {
    const agent = await initialised;
    if (agent.protocolVersion !== protocolVersion) {
      throw new HarnessFailure(
        `The harness ${harness} speaks version ${agent.protocolVersion} of the Agent Client Protocol; version ${protocolVersion} is needed.`,
      );
    }
    const mcp = mcpServersOf(options.config, {
      stdio: !options.builtin,
      http: agent.agentCapabilities?.mcpCapabilities?.http === true,
    });
    canLoad = !options.builtin && agent.agentCapabilities?.loadSession === true;
    const notLoaded =
      load === undefined ? undefined : await loadSession({ sessionId: load, cwd, mcpServers: mcp.servers });
    if (load !== undefined && notLoaded === undefined) return { sessionId: load, skipped: mcp.skipped, loaded: true };
    const session = await answer('session/new', link.newSession({ cwd, mcpServers: mcp.servers }), startTimeoutMs);
    return { sessionId: session.sessionId, skipped: mcp.skipped, loaded: false, notLoaded };
  }

  /** Why the harness does not go on with its earlier session; undefined: it does. What it repeats of it meanwhile is not told again. */
  async function loadSession(session: LoadSessionRequest): Promise<string | undefined> {
    if (!canLoad) return `The harness ${harness} does not load sessions any more.`;
    replayed = session.sessionId;
    try {
      await answer('session/load', link.loadSession(session), startTimeoutMs);
      replayed = undefined;
      return undefined;
    } catch (error) {
      return errorText(error);
    }
  }

  async function play(turn: Turn): Promise<HarnessOutcome> {
    const opened: OpenedSession =
      sessionId === undefined ? await openSession(turn) : { sessionId, skipped: [], loaded: true };
    sessionId = opened.sessionId;
    stepId = turn.stepId;
    turn.onStarted();
    for (const skipped of opened.skipped) updates.notice('mcp_server_skipped', skipped);
    if (opened.notLoaded !== undefined) updates.notice('session_not_loaded', { reason: opened.notLoaded });
    const sees = (await initialised).agentCapabilities?.promptCapabilities?.image === true;
    const images = imageContent(turn.images, sees, options.imageLimits);
    for (const notSent of images.notSent) updates.notice('image_not_sent', notSent);
    if (cancelled) return { kind: 'cancelled' };
    if (interrupted) return { kind: 'interrupted', summary: '' };
    const prompt = [...turn.prompt(opened.loaded), ...images.blocks];
    const response = await answer('session/prompt', link.prompt({ sessionId, prompt }));
    if (interrupted) return { kind: 'interrupted', summary: updates.lastText.trim() };
    return outcomeOf(response, options, updates.lastText);
  }

  return {
    initialised,
    get loadableSession() {
      return canLoad ? sessionId : undefined;
    },
    get isAlive() {
      return link.isAlive();
    },
    exited: link.exited,
    async run(turn) {
      let outcome: HarnessOutcome;
      interrupted = false;
      overdue = undefined;
      isPlaying = true;
      turnEnded = new AbortController();
      if (cancelled) turnEnded.abort(new Error('cancelled'));
      stepId = '';
      updates.startTurn();
      try {
        outcome = await play(turn);
      } catch (error) {
        outcome =
          overdue === undefined
            ? { kind: 'failed', code: 'agent_process_failed', summary: '', message: errorText(error) }
            : { kind: 'interrupted', summary: updates.lastText.trim() };
      }
      isPlaying = false;
      clearTimeout(deadline);
      deadlineAt = Number.POSITIVE_INFINITY;
      if (overdue !== undefined && stepId !== '') updates.notice('harness_killed', { reason: overdue });
      if (cancelled) outcome = { kind: 'cancelled' };
      turnEnded.abort(new Error('the turn is over'));
      updates.endTurn(
        outcome.kind === 'succeeded' ? 'the harness ended its turn without telling the result' : 'interrupted',
      );
      if (stepId !== '') turn.onEnded(updates.lastText.trim());
      return outcome;
    },
    cancel() {
      cancelled = true;
      turnEnded.abort(new Error('cancelled'));
      if (sessionId !== undefined) link.cancel({ sessionId });
    },
    interrupt(graceMs) {
      interrupted = true;
      turnEnded.abort(new Error('interrupted'));
      if (sessionId !== undefined) link.cancel({ sessionId });
      // The harness in this process obeys its signal; there is no process to kill.
      if (options.builtin || !isPlaying || performance.now() + graceMs >= deadlineAt) return;
      deadlineAt = performance.now() + graceMs;
      clearTimeout(deadline);
      deadline = setTimeout(() => {
        overdue = `The harness ${harness} did not end its turn within ${graceMs / 1000} s of the interrupt and was killed.`;
        void link.kill();
      }, graceMs);
    },
    kill: () => link.kill(),
  };
}
