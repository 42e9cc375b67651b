import { maxOutputBytes } from '@runyard/contract/limits';
import type { AgentEventBody } from '@runyard/contract/runs/agent-events';
import { actionId } from '../acp/action-id.ts';
import {
  asObject,
  asString,
  commandDuration,
  contentText,
  exitCode,
  type JsonObject,
  rawOutputText,
  terminalOutput,
} from '../acp/tool-output.ts';
import { monotonicMs } from '../builtin-modules.ts';
import type { KeptOutput } from '../commands/kept-output.ts';
import { type OutputWindow, outputWindow } from '../commands/output-window.ts';
import {
  type ActionState,
  actionTitle,
  beginWait,
  changesThings,
  describeAction,
  durationOf,
  endWait,
  newAction,
} from './action-state.ts';
import type { ToolIdentity } from './categories.ts';

/** The part of an action that a request to a person shows. */
export interface ActionInQuestion extends ToolIdentity {
  readonly id: string;
  readonly title: string;
  readonly input: unknown;
}

export interface ActionsOptions {
  emit: (event: AgentEventBody) => void;
  stepId: () => string;
  mcpServers: readonly string[];
  now?: () => number;
  /** Opens the whole output of a command; absent: whole outputs are not kept, or the harness keeps them itself. */
  openOutput?: (() => KeptOutput | undefined) | undefined;
  /** Called when a command or a file change has ended, if the harness had not asked for permission for it. */
  onUnasked?: (action: { readonly action_id: string; readonly name: string }) => void;
}

/**
 * Turns the tool calls of a harness into actions. The first message about a call creates the action of the call. Each action ends
 * exactly once.
 */
export function trackActions(options: ActionsOptions) {
  const { emit } = options;
  const now = options.now ?? monotonicMs;
  const open = new Map<string, ActionState>();
  const settled = new Set<string>();
  const denied = new Set<string>();
  /** Resolves when the ends of actions whose outputs are being uploaded were emitted. */
  let keeping: Promise<void> = Promise.resolve();

  function announce(action: ActionState): void {
    const input = JSON.stringify(action.input);
    if (action.announced && action.announcedInput === input) return;
    action.announced = true;
    action.announcedInput = input;
    emit({
      type: 'action',
      step_id: options.stepId(),
      action_id: action.id,
      category: action.identity.category,
      name: action.identity.name,
      input: action.input,
    });
  }

  function append(action: ActionState, text: string): void {
    announce(action);
    action.appended += text;
    emit({ type: 'action_output', action_id: action.id, text });
  }

  function finish(action: ActionState, state: 'completed' | 'failed', update: JsonObject, note = ''): void {
    announce(action);
    action.live.end();
    if (note !== '')
      append(action, `${action.appended === '' || action.appended.endsWith('\n') ? '' : '\n'}[${note}]\n`);
    const wasDenied = state === 'failed' && (denied.has(action.id) || saysDenied(update));
    const output = endOutput(action, update);
    // Prefer the harness's own measurement: our clock also counts the time until the harness sends the update.
    const duration = commandDuration(asObject(update.rawOutput)) ?? durationOf(action, wasDenied, now());
    const result = resultOf(action, wasDenied ? 'denied' : state, {
      ...output,
      duration,
      code: exitCode(update._meta, update.rawOutput),
    });
    const { bytes, artifact } = output;
    const keepsWhole = bytes > maxOutputBytes && artifact === undefined && note === '';
    emitResult(action, result, keepsWhole ? wholeOutputOf(action, output.final) : undefined, bytes);
    if (!action.asked && changesThings(action)) {
      options.onUnasked?.({ action_id: action.id, name: action.identity.name });
    }
    open.delete(action.id);
    settled.add(action.id);
  }

  /** Emits the end of an action. If `whole` is given, uploads this output first. */
  function emitResult(action: ActionState, result: ActionResult, whole: KeptOutput | undefined, bytes: number): void {
    if (whole === undefined) {
      action.kept?.close();
      emit(result);
      return;
    }
    const kept = whole.keep({ actionId: action.id, title: actionTitle(action) }, bytes);
    keeping = Promise.all([kept, keeping]).then(([uid]) =>
      emit(uid === undefined ? result : { ...result, output_artifact_uid: uid }),
    );
  }

  /** Returns the whole output of a command, if it is kept. `final`: the whole output, if the harness sends it with the end of the command. */
  function wholeOutputOf(action: ActionState, final: string | undefined): KeptOutput | undefined {
    if (action.identity.category !== 'command' || final === undefined) return action.kept;
    action.kept?.close();
    const kept = options.openOutput?.();
    kept?.push(Buffer.from(final));
    return kept;
  }

  /** Applies a `tool_call`, a `tool_call_update`, or the `toolCall` of a permission request. */
  function upsert(update: JsonObject, askedPermission = false): void {
    const harnessId = asString(update.toolCallId);
    if (harnessId === undefined) return;
    const id = actionId(harnessId);
    if (settled.has(id)) return;
    let action = open.get(id);
    if (action === undefined) {
      action = newAction(id, now(), append);
      open.set(id, action);
    }
    describeAction(action, update, options.mcpServers);
    if (askedPermission) action.asked = true;
    const waits = asObject(asObject(update._meta)?.runyard)?.waits;
    if (waits === true) hold(action.id);
    if (waits === false) release(action.id, 'approve');
    const status = asString(update.status);
    const output = terminalOutput(update._meta);
    const hasInput = asObject(update.rawInput) !== undefined && Object.keys(update.rawInput as object).length > 0;
    const isPending = status === undefined || status === 'pending';
    if (hasInput || askedPermission || !isPending) announce(action);
    if (status === 'in_progress' || output !== undefined) action.startedAt ??= now();
    if (output !== undefined) {
      action.streamed = true;
      if (action.identity.category === 'command') action.kept ??= options.openOutput?.();
      action.live.push(output);
    }
    takeContent(action, update, askedPermission);
    if (status === 'completed' || status === 'failed') finish(action, status, update);
  }

  /** Ends the actions that the harness left open at the end of a turn, after a cancel, or at its exit. */
  function settle(note: string): void {
    for (const action of [...open.values()]) {
      action.streamed = true;
      finish(action, 'failed', {}, note);
    }
  }

  function hold(id: string): void {
    const action = open.get(id);
    if (action) beginWait(action, now());
  }

  function release(id: string, decision: 'approve' | 'deny'): void {
    if (decision === 'deny') denied.add(id);
    const action = open.get(id);
    if (action) endWait(action, decision, now());
  }

  return {
    upsert,
    settle,
    /** Resolves when the ends of all ended actions were emitted. */
    get keeping() {
      return keeping;
    },
    /** Returns the part of an open action that a request to a person shows. */
    inQuestion(toolCallId: string | undefined): ActionInQuestion | undefined {
      const action = toolCallId === undefined ? undefined : open.get(actionId(toolCallId));
      if (action === undefined) return undefined;
      return { id: action.id, ...action.identity, input: action.wholeInput, title: actionTitle(action) };
    },
    /** Marks that an action waits for a person. */
    hold,
    /** Marks that a person has decided about an action. A denied action ends in the state `denied`. */
    release,
  };
}

type ActionResult = Extract<AgentEventBody, { type: 'action_result' }>;

/** The output of an action at its end. */
interface EndOutput {
  /** The whole output, if the harness sends it with the end of the action. */
  readonly final: string | undefined;
  /** The part of `final` that the event contains. */
  readonly text: string | undefined;
  /** Size of the whole output. */
  readonly bytes: number;
  /** Artifact with the whole output, if the harness has stored it. */
  readonly artifact: string | undefined;
}

function endOutput(action: ActionState, update: JsonObject): EndOutput {
  const raw = asObject(update.rawOutput);
  const final = action.streamed ? fullOutputOf(raw) : (action.content ?? rawOutputText(update.rawOutput));
  const window = final === undefined ? undefined : windowOf(final);
  const reported = raw?.output_bytes;
  return {
    final,
    text: window?.text(),
    bytes: Number.isSafeInteger(reported) ? (reported as number) : (window ?? action.window).totalBytes,
    artifact: asString(raw?.output_artifact_uid)?.slice(0, 100),
  };
}

/** Returns the event about the end of an action. */
function resultOf(
  action: ActionState,
  state: ActionResult['state'],
  end: EndOutput & { readonly duration: number | undefined; readonly code: number | undefined },
): ActionResult {
  const { text, bytes, artifact, duration, code } = end;
  return {
    type: 'action_result',
    action_id: action.id,
    state,
    ...(text !== undefined && text !== action.appended ? { output: text } : {}),
    ...(code === undefined ? {} : { exit_code: code }),
    ...(duration === undefined ? {} : { duration_ms: duration }),
    ...(bytes > maxOutputBytes ? { output_bytes: bytes } : {}),
    ...(artifact === undefined ? {} : { output_artifact_uid: artifact }),
  };
}

/** Takes the text of an update's content as output. */
function takeContent(action: ActionState, update: JsonObject, askedPermission: boolean): void {
  const content = describesCommand(update) ? undefined : contentText(update.content);
  if (content === undefined || askedPermission) return;
  const before = action.content ?? '';
  if (!action.streamed && content.startsWith(before) && update.status !== 'pending')
    action.live.push(content.slice(before.length));
  action.content = content;
}

/** Returns true if the built-in harness says that a person denied the call and that the call therefore did not run. */
const saysDenied = (update: JsonObject): boolean => asObject(asObject(update._meta)?.runyard)?.denied === true;

/** Returns true for the start of a command: its content describes the command, as Gemini CLI does, because there is no output yet. */
const describesCommand = ({ sessionUpdate, kind, status }: JsonObject): boolean =>
  sessionUpdate === 'tool_call' && kind === 'execute' && (status === 'pending' || status === 'in_progress');

/**
 * Returns the head and tail of a long output, which the built-in harness sends when the command ends. Returns undefined if the pieces
 * that were sent while the command ran are already the whole output.
 */
function fullOutputOf(raw: JsonObject | undefined): string | undefined {
  return raw?.output_truncated === true ? asString(raw.output) : undefined;
}

function windowOf(text: string): OutputWindow {
  const window = outputWindow();
  window.push(Buffer.from(text));
  return window;
}
