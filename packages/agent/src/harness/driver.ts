import type { ContentBlock } from '@agentclientprotocol/sdk';
import type { AgentEventBody } from '@runyard/contract/runs/agent-events';
import type { AgentLink, HarnessExit, LinkEvents } from '../acp/agent-link.ts';
import type { HarnessOutcome } from '../acp/outcome.ts';
import type { Approvals } from '../approvals/approvals.ts';
import { type ImageLimits, imageContent, type PromptImage } from '../images/images.ts';
import type { RunMcp } from '../mcp/servers.ts';
import type { PlanGuard } from '../workspace/plan-guard.ts';
import { errorText } from './error-text.ts';
import { harnessAnswers } from './harness-answers.ts';
import { interruptDeadline } from './interrupt-deadline.ts';
import { answerPermission } from './permissions.ts';
import { watchPlan } from './plan-watch.ts';
import type { HarnessProfile } from './profile.ts';
import { replayFilter } from './replay-filter.ts';
import { type Denial, plainPrompt, sendAndContinue } from './send-prompt.ts';
import { startSession } from './session.ts';
import { type NormaliserOptions, type SessionUpdates, sessionUpdates } from './session-updates.ts';
import type { TurnCheck } from './turn-check.ts';
import { outcomeOf } from './turn-outcome.ts';

export interface DriverOptions extends Pick<NormaliserOptions, 'openOutput'> {
  profile: HarnessProfile;
  /** Starts the harness and connects to it. */
  start: (events: LinkEvents) => AgentLink;
  emit: (event: AgentEventBody) => void;
  /** Resolves when the reporter can take more events. */
  ready: () => Promise<void>;
  /** Names of the run's MCP servers. */
  mcpServers: readonly string[];
  mcp: Pick<RunMcp, 'forHarness'>;
  imageLimits: ImageLimits;
  approvals: Approvals;
  /** Finds changes of the workspace in turns with the mode `plan`. */
  planGuard?: PlanGuard | undefined;
  /** Finds reasons for a failure that the harness does not report. Absent if the harness itself reports all reasons. */
  turnCheck?: TurnCheck | undefined;
  /** Timeout for each of `initialize`, `session/new` and `session/load`; default 60 s. */
  startTimeoutMs?: number;
}

export interface Turn {
  cwd: string;
  stepId: string;
  /** True: the turn must change nothing (mode `plan`). The driver stops a turn that does. */
  isPlan?: boolean;
  /** Returns the prompt. `loaded`: true if the harness already knows the conversation so far. */
  prompt: (loaded: boolean) => ContentBlock[];
  /** Session of an earlier harness process. If the harness can load this session, the first turn continues it. */
  load?: string | undefined;
  /** Images that follow the prompt, if the harness takes images. */
  images: readonly PromptImage[];
  /** Called before the prompt is sent. The driver sends the prompt only after the returned promise has resolved. */
  onStarted: () => Promise<void>;
  /**
   * Called after all events of the turn were emitted, but only if `onStarted` was called. `summary` is the end of the last message of the
   * harness.
   */
  onEnded: (summary: string) => void;
}

export interface Driver {
  /** Id of the session, if another process of the harness can load the session. */
  readonly loadableSession: string | undefined;
  /**
   * Settles when the harness is initialised or the initialisation has failed. The caller can ignore a failure, because `run` reports it.
   */
  readonly initialised: Promise<unknown>;
  /** Runs a turn. Only one turn may run at a time. The first turn opens the session. */
  run(turn: Turn): Promise<HarnessOutcome>;
  /** False when the process of the harness has ended: no further turn can run. */
  readonly isAlive: boolean;
  /** Resolves when the harness has exited. */
  readonly exited: Promise<HarnessExit>;
  /**
   * Asks the harness to end the current turn. Another turn can follow. If a harness in a separate process does not end the turn within
   * `graceMs`, the driver kills the harness, and the turn counts as interrupted.
   */
  interrupt(graceMs: number): void;
  /** Asks the harness to stop. `run` then resolves with `cancelled` when the harness has stopped or was killed. */
  cancel(): void;
  kill(): Promise<void>;
}

/** Drives one ACP v1 agent: starts the agent, opens a session, runs turns, and converts the updates of the agent into events. */
export function driveHarness(options: DriverOptions): Driver {
  const { profile, approvals, startTimeoutMs = 60_000 } = options;
  const { name: harness, capabilities } = profile;
  let stepId = '';
  let cancelled = false;
  let interrupted = false;
  let isRunning = false;
  /** The last denial in this turn. */
  let denied: Denial | undefined;
  /** Aborts when the turn is over or was cancelled: no answer of a person is needed any more. */
  let turnEnded = new AbortController();
  const replay = replayFilter();
  const plan = watchPlan(options.planGuard, () => {
    if (!isRunning) return;
    askToEndTurn('the turn changed files in the mode plan');
    if (capabilities.ownProcess) deadline.start(planGraceMs);
  });
  const emit = (event: AgentEventBody): void => {
    options.emit(event);
    plan.observe(event);
  };

  const updates = sessionUpdates({
    emit,
    stepId: () => stepId,
    mcpServers: options.mcpServers,
    openOutput: options.openOutput,
    mustAsk: () => capabilities.ownProcess && approvals.policy !== 'auto-approve',
  });
  const check = capabilities.ownProcess ? options.turnCheck : undefined;

  const link = options.start({
    ...linkEvents(options, { replay, emit, updates }),
    // If `answerPermission` rejects, the turn has ended, and the harness gets the answer "cancelled".
    permission: (params) => {
      const onDenied = (text: string | undefined) => {
        denied = { text };
      };
      const turn = { isPlanning: plan.isPlanning, signal: turnEnded.signal, onDenied };
      return answerPermission(params, { harness, approvals, updates, ...turn }).catch(() => undefined);
    },
  });
  const answers = harnessAnswers(harness, link);
  const session = startSession({ profile, link, answers, replay, mcp: options.mcp, startTimeoutMs });
  const deadline = interruptDeadline(harness, () => void link.kill());

  /** Returns the outcome of a turn that was stopped before its prompt was sent. */
  const notSent = (): HarnessOutcome => (cancelled ? { kind: 'cancelled' } : { kind: 'interrupted', summary: '' });

  async function prompt(turn: Turn): Promise<HarnessOutcome> {
    const { sessionId, loaded, skipped, notLoaded } = await session.open(turn);
    stepId = turn.stepId;
    const begun = turn.onStarted();
    begun.catch(() => {});
    for (const server of skipped) updates.notice('mcp_server_skipped', server);
    if (notLoaded !== undefined) updates.notice('session_not_loaded', { reason: notLoaded });
    const takesImages = (await session.initialised).agentCapabilities?.promptCapabilities?.image === true;
    const images = imageContent(turn.images, takesImages, options.imageLimits);
    for (const image of images.notSent) updates.notice('image_not_sent', image);
    if (cancelled || interrupted) return notSent();
    const promptBlocks = turn.prompt(loaded);
    const blocks = [...(capabilities.hasCommands ? plainPrompt(promptBlocks) : promptBlocks), ...images.blocks];
    await Promise.all([begun, check?.begin()]);
    const notSet = await session.setPlanMode(turn.isPlan === true);
    if (notSet !== undefined) updates.notice('mode_not_set', { mode: turn.isPlan ? 'plan' : 'normal', reason: notSet });
    await plan.begin(turn.isPlan === true);
    if (cancelled || interrupted) return notSent();
    link.beginTurn?.();
    const send = (prompt: ContentBlock[]) => answers('session/prompt', link.prompt({ sessionId, prompt }));
    const takeDenial = () => {
      const taken = cancelled || interrupted || plan.changed !== undefined ? undefined : denied;
      denied = undefined;
      return taken;
    };
    const response = await sendAndContinue(send, blocks, takeDenial);
    if (response === 'denied') return { kind: 'succeeded', summary: updates.lastText.trim() };
    if (interrupted) return { kind: 'interrupted', summary: updates.lastText.trim() };
    return outcomeOf(response, profile, updates.lastText);
  }

  /** Ends open questions to a person, and asks the harness to end the turn. */
  function askToEndTurn(reason: string): void {
    turnEnded.abort(new Error(reason));
    if (session.id !== undefined) link.cancel({ sessionId: session.id });
  }

  return {
    initialised: session.initialised,
    get loadableSession() {
      return session.loadableId;
    },
    get isAlive() {
      return link.isAlive();
    },
    exited: link.exited,
    async run(turn) {
      interrupted = false;
      isRunning = true;
      deadline.beginTurn();
      turnEnded = new AbortController();
      if (cancelled) turnEnded.abort(new Error('cancelled'));
      stepId = '';
      updates.startTurn();
      plan.startTurn();
      denied = undefined;
      const promptOutcome = await prompt(turn).catch((error: unknown): HarnessOutcome => {
        if (deadline.exceeded !== undefined) return { kind: 'interrupted', summary: updates.lastText.trim() };
        return { kind: 'failed', code: 'agent_process_failed', summary: '', message: errorText(error) };
      });
      const ended = (await check?.explain(promptOutcome)) ?? promptOutcome;
      isRunning = false;
      await plan.endTurn();
      // Commands that continue after a plan could change something later.
      if (interrupted || plan.isPlanning) link.endStrays?.();
      deadline.endTurn();
      const hasStarted = stepId !== '';
      if (deadline.exceeded !== undefined && hasStarted)
        updates.notice('harness_killed', { reason: deadline.exceeded });
      const { changed } = plan;
      if (changed !== undefined) updates.notice('plan_changed', { path: changed });
      plan.end();
      const outcome: HarnessOutcome = cancelled
        ? { kind: 'cancelled' }
        : changed === undefined
          ? ended
          : planBroken(changed);
      turnEnded.abort(new Error('the turn is over'));
      await updates.keeping;
      updates.endTurn(
        outcome.kind === 'succeeded' ? 'the harness ended its turn without reporting the result' : 'interrupted',
      );
      if (hasStarted) turn.onEnded(updates.lastText.trim());
      return outcome;
    },
    cancel() {
      cancelled = true;
      askToEndTurn('cancelled');
    },
    interrupt(graceMs) {
      interrupted = true;
      askToEndTurn('interrupted');
      // Only a harness in a separate process gets a deadline. The harness in this process has no process to kill, and always ends the turn
      // when the abort signal aborts.
      if (capabilities.ownProcess && isRunning) deadline.start(graceMs);
    },
    kill: () => link.kill(),
  };
}

/** Returns the handlers of everything that the harness says, except its requests for permission. */
function linkEvents(
  { ready }: DriverOptions,
  of: {
    readonly replay: ReturnType<typeof replayFilter>;
    readonly emit: (event: AgentEventBody) => void;
    readonly updates: SessionUpdates;
  },
): Omit<LinkEvents, 'permission'> {
  const { replay, emit, updates } = of;
  return {
    line: (line) => {
      if (!replay.hidesLine(line)) emit({ type: 'transcript', line });
    },
    // The end of a command, with its whole output, comes before everything that the harness says after it.
    ready: () => updates.keeping.then(ready),
    update: (update, sessionId) => {
      if (!replay.hidesUpdate(sessionId)) updates.update(update);
    },
  };
}

/** Time in which a harness must end a turn that changed something in the mode `plan`. */
const planGraceMs = 2_000;

/** The outcome of a turn with the mode `plan` that changed something. */
const planBroken = (path: string): HarnessOutcome => ({
  kind: 'failed',
  summary: '',
  message: `The turn has the mode plan, in which nothing may change, but ${path} was changed. The turn was stopped. Look at the change, and send a message without the mode plan if the agent should do the work.`,
});
