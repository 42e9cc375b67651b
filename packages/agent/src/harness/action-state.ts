/** The state of a tool call of a harness, merged from all messages about the call so far. */
import { firstPart } from '@runyard/contract/wire/shorten';
import { asObject, asString, boundedData, type JsonObject } from '../acp/tool-output.ts';
import type { KeptOutput } from '../commands/kept-output.ts';
import { liveOutput } from '../commands/live-output.ts';
import { type OutputWindow, outputWindow } from '../commands/output-window.ts';
import { identifyTool, type ToolIdentity } from './categories.ts';

export interface ActionState {
  readonly id: string;
  identity: ToolIdentity;
  call: { name?: string | undefined; kind?: string | undefined; title?: string | undefined };
  /** Arguments of the call, with long texts cut. */
  input: unknown;
  /** The arguments as the harness sent them. A request to a person shows these whole arguments. */
  wholeInput: unknown;
  /** True: the harness has sent the arguments of the call. */
  hasInput: boolean;
  announced: boolean;
  /** True: the harness has asked the agent for permission to run the action. */
  asked: boolean;
  /** The input in the last event that announced the action, as JSON. */
  announcedInput: string | undefined;
  /** Time at which the first message about the call arrived. */
  readonly firstSeenAt: number;
  /** The time at which the call began to run; undefined: the call is pending. */
  startedAt: number | undefined;
  /** The time at which the call began to wait for a person; undefined: the call does not wait for a person. */
  waitsSince: number | undefined;
  /** Total time that the call waited for people after it began to run. */
  waitedMs: number;
  /** The output that was appended to the conversation. */
  appended: string;
  /** Appends the head of the output while it arrives, and the remaining text when the output ends. */
  readonly live: ReturnType<typeof liveOutput>;
  readonly window: OutputWindow;
  /** The latest `content`. Each update that has a `content` replaces this value. */
  content: string | undefined;
  /** True: the output came in `_meta` as terminal output, so `content` is not the output. */
  streamed: boolean;
  /** The whole streamed output of a command; undefined: it is not kept. */
  kept: KeptOutput | undefined;
}

export function newAction(id: string, now: number, append: (action: ActionState, text: string) => void): ActionState {
  const window = outputWindow();
  const action: ActionState = {
    id,
    window,
    live: liveOutput(
      window,
      (text) => append(action, text),
      (bytes) => action.kept?.push(bytes),
    ),
    identity: { name: 'tool', category: 'integration' },
    call: {},
    input: {},
    wholeInput: {},
    hasInput: false,
    announced: false,
    asked: false,
    announcedInput: undefined,
    firstSeenAt: now,
    startedAt: undefined,
    waitsSince: undefined,
    waitedMs: 0,
    appended: '',
    content: undefined,
    streamed: false,
    kept: undefined,
  };
  return action;
}

const maxTitleLength = 1_000;

/** Updates the name, kind, title and input of the action from an update of the harness. */
export function describeAction(action: ActionState, update: JsonObject, mcpServers: readonly string[]): void {
  const { name, kind, title } = action.call;
  action.call = {
    name: asString(update.name) ?? name,
    kind: asString(update.kind) ?? kind,
    title: asString(update.title) ?? title,
  };
  action.identity = identifyTool(action.call, mcpServers);
  const raw = update.rawInput;
  if (raw !== undefined && raw !== null && JSON.stringify(raw) !== '{}') {
    action.input = boundedData(raw);
    action.wholeInput = raw;
    action.hasInput = true;
  } else if (!action.hasInput && Array.isArray(update.changes)) {
    // Codex and Gemini CLI send no arguments for a change of files, only its diffs. The conversation shows them as the output.
    const input = (changes: unknown[]) => (changes.length === 1 ? changes[0] : { changes });
    const paths = update.changes.map((change) => ({ path: asObject(change)?.path }));
    // An announced action keeps its input, so that the logs show it once.
    if (!action.announced) action.input = boundedData(input(paths));
    action.wholeInput = input(update.changes);
  } else if (!action.announced && action.call.title !== undefined && JSON.stringify(action.input) === '{}') {
    action.input = { title: firstPart(action.call.title, maxTitleLength) };
    action.wholeInput = { title: action.call.title };
  }
}

/**
 * Returns the title that a person sees for an action. Prefers the command of the action, because a command is more precise than the
 * harness's title.
 */
export function actionTitle({ wholeInput, call, identity }: ActionState): string {
  const command = asObject(wholeInput)?.command;
  const line = Array.isArray(command) ? command.map(String).join(' ') : asString(command);
  return line ?? call.title ?? identity.name;
}

const changingKinds: ReadonlySet<string> = new Set(['execute', 'edit', 'delete', 'move']);

/** Returns true if the action runs a command or changes files, according to the kind that the harness gave it. */
export const changesThings = ({ call, identity }: ActionState): boolean =>
  call.kind === undefined ? identity.category === 'command' : changingKinds.has(call.kind);

/** Marks that the action waits for a person. */
export function beginWait(action: ActionState, now: number): void {
  action.waitsSince ??= now;
}

/** Marks that the wait for a person has ended. An approved action that was pending begins to run. */
export function endWait(action: ActionState, decision: 'approve' | 'deny', now: number): void {
  if (action.waitsSince === undefined) return;
  if (action.startedAt !== undefined) action.waitedMs += now - action.waitsSince;
  else if (decision === 'approve') action.startedAt = now;
  action.waitsSince = undefined;
}

/** Returns how long the action ran, in ms, without the time in which it waited for a person; undefined if the action never ran. */
export function durationOf(action: ActionState, denied: boolean, now: number): number | undefined {
  const { startedAt, waitsSince, waitedMs, firstSeenAt } = action;
  const end = waitsSince ?? now;
  if (startedAt !== undefined) return Math.round(end - startedAt - waitedMs);
  // Some harnesses never report that a call begins to run. Then count from the first message about the call.
  return denied || waitsSince !== undefined ? undefined : Math.round(end - firstSeenAt);
}
