import type { ContentBlock, PromptResponse } from '@agentclientprotocol/sdk';
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
import { startSession } from './session.ts';
import { type NormaliserOptions, sessionUpdates } from './session-updates.ts';
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
    line: (line) => {
      if (!replay.hidesLine(line)) emit({ type: 'transcript', line });
    },
    // The end of a command, with its whole output, comes before everything that the harness says after it.
    ready: () => updates.keeping.then(options.ready),
    update: (update, sessionId) => {
      if (!replay.hidesUpdate(sessionId)) updates.update(update);
    },
    // If `answerPermission` rejects, the turn has ended, and the harness gets the answer "cancelled".
    permission: (params) =>
      answerPermission(params, {
        harness,
        approvals,
        updates,
        isPlanning: plan.isPlanning,
        signal: turnEnded.signal,
        onDenied: (text) => {
          denied = { text };
        },
      }).catch(() => undefined),
  });
  const answers = harnessAnswers(harness, link);
  const session = startSession({ profile, link, answers, replay, mcp: options.mcp, startTimeoutMs });
  const deadline = interruptDeadline(harness, () => void link.kill());

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
    if (cancelled) return { kind: 'cancelled' };
    if (interrupted) return { kind: 'interrupted', summary: '' };
    const promptBlocks = turn.prompt(loaded);
    const blocks = [...(capabilities.hasCommands ? plainPrompt(promptBlocks) : promptBlocks), ...images.blocks];
    await Promise.all([begun, check?.begin()]);
    const notSet = await session.setPlanMode(turn.isPlan === true);
    if (notSet !== undefined) updates.notice('mode_not_set', { mode: turn.isPlan ? 'plan' : 'normal', reason: notSet });
    await plan.begin(turn.isPlan === true);
    if (cancelled) return { kind: 'cancelled' };
    if (interrupted) return { kind: 'interrupted', summary: '' };
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
      const planned: HarnessOutcome =
        changed === undefined ? ended : { kind: 'failed', summary: '', message: planBroken(changed) };
      plan.end();
      const outcome: HarnessOutcome = cancelled ? { kind: 'cancelled' } : planned;
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

/** Maximum number of times that the driver continues a turn that the harness ended because of a denial. */
const maxDenials = 20;

/** A denial of a person. Without a text, the message about the denial becomes the next turn. */
interface Denial {
  readonly text: string | undefined;
}

/**
 * Sends the prompt. Codex ends its turn after a denial: sends the text of each denial as a further prompt. Returns `denied` if the message
 * about a denial becomes the next turn.
 */
async function sendAndContinue(
  send: (prompt: ContentBlock[]) => Promise<PromptResponse>,
  prompt: ContentBlock[],
  takeDenial: () => Denial | undefined,
): Promise<PromptResponse | 'denied'> {
  let response = await send(prompt);
  for (let count = 0; response.stopReason === 'cancelled' && count < maxDenials; count += 1) {
    const denial = takeDenial();
    if (denial === undefined) break;
    if (denial.text === undefined) return 'denied';
    response = await send([{ type: 'text', text: denial.text }]);
  }
  return response;
}

/** Time in which a harness must end a turn that changed something in the mode `plan`. */
const planGraceMs = 2_000;

const planBroken = (path: string): string =>
  `The turn has the mode plan, in which nothing may change, but ${path} was changed. The turn was stopped. Look at the change, and send a message without the mode plan if the agent should do the work.`;

/**
 * Returns the prompt in a form that the harness does not treat as one of its own commands. Harnesses recognise a command by a slash at the
 * start of the prompt, and Gemini CLI also by a dollar sign. A harness answers its own commands without a model and ends the turn as a
 * success, so "/status gives 500, fix it" would not reach the model.
 */
export function plainPrompt(blocks: readonly ContentBlock[]): ContentBlock[] {
  const at = blocks.findIndex(({ type }) => type === 'text');
  return blocks.map((block, index) =>
    index === at && block.type === 'text' && /^\s*[/$]/.test(block.text)
      ? { ...block, text: `The user says:\n\n${block.text}` }
      : block,
  );
}
