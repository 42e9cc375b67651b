import type { AgentEventBody } from '@runyard/contract/agent-protocol';
import { maxOutputBytes } from '@runyard/contract/limits';
import { firstPart } from '@runyard/contract/shorten';
import { actionId } from '../acp/action-id.ts';
import {
  asObject,
  asString,
  boundedData,
  contentText,
  exitCode,
  type JsonObject,
  rawOutputText,
  terminalOutput,
} from '../acp/tool-output.ts';
import { cutText } from '../commands/output-window.ts';
import { identifyTool, type ToolIdentity } from './categories.ts';

interface Action {
  id: string;
  identity: ToolIdentity;
  call: { name?: string | undefined; kind?: string | undefined; title?: string | undefined };
  input: unknown;
  announced: boolean;
  announcedInput: string | undefined;
  /** When it was first told of. */
  toldAt: number;
  /** Since when it runs; undefined: it is pending. */
  startedAt: number | undefined;
  /** Since when it waits for a person. */
  waitsSince: number | undefined;
  /** How long it waited for people while it ran. */
  waitedMs: number;
  /** Appended to the conversation so far. */
  passedOn: string;
  /** Of all appended text, also what was over the limit. */
  outputBytes: number;
  /** The latest `content`: replaced by each update that has one. */
  content: string | undefined;
  /** Text that came as terminal output: the true output, `content` is then only a frame around it. */
  streamed: boolean;
}

/** An action as a person is asked about it. */
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
}

/** Tool calls of a harness as actions: upserted by id from whatever message names them first, each settled exactly once. */
export function trackActions(options: ActionsOptions) {
  const { emit } = options;
  const now = options.now ?? (() => performance.now());
  const open = new Map<string, Action>();
  const settled = new Set<string>();
  const denied = new Set<string>();

  function announce(action: Action): void {
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

  function append(action: Action, text: string): void {
    if (text === '') return;
    announce(action);
    action.outputBytes += Buffer.byteLength(text);
    const room = maxOutputBytes - action.passedOn.length;
    if (room <= 0) return;
    const part = firstPart(text, room);
    action.passedOn += part;
    emit({ type: 'action_output', action_id: action.id, text: part });
  }

  /** How long it ran, in ms: what it waited for a person is not counted. Undefined: it never ran. */
  function durationOf({ startedAt, waitsSince, waitedMs, toldAt }: Action, wasDenied: boolean): number | undefined {
    const end = waitsSince ?? now();
    if (startedAt !== undefined) return Math.round(end - startedAt - waitedMs);
    // Some harnesses never say that a call begins.
    return wasDenied || waitsSince !== undefined ? undefined : Math.round(end - toldAt);
  }

  function finish(action: Action, state: 'completed' | 'failed', update: JsonObject): void {
    announce(action);
    const raw = asObject(update.rawOutput);
    const final = action.streamed ? fullOutputOf(raw) : (action.content ?? rawOutputText(update.rawOutput));
    const cut = final === undefined ? undefined : cutText(final, maxOutputBytes);
    const code = exitCode(update._meta, update.rawOutput);
    const wasDenied = state === 'failed' && (denied.has(action.id) || saysDenied(update));
    const duration = durationOf(action, wasDenied);
    const bytes = Number.isInteger(raw?.output_bytes)
      ? (raw?.output_bytes as number)
      : (cut?.totalBytes ?? action.outputBytes);
    emit({
      type: 'action_result',
      action_id: action.id,
      state: wasDenied ? 'denied' : state,
      ...(cut !== undefined && cut.text !== action.passedOn ? { output: cut.text } : {}),
      ...(code === undefined ? {} : { exit_code: code }),
      ...(duration === undefined ? {} : { duration_ms: duration }),
      ...(bytes > maxOutputBytes ? { output_bytes: bytes } : {}),
    });
    open.delete(action.id);
    settled.add(action.id);
  }

  /** `update`: a `tool_call`, a `tool_call_update`, or the `toolCall` of a permission request. */
  function upsert(update: JsonObject, askedPermission = false): void {
    const given = asString(update.toolCallId);
    if (given === undefined) return;
    const id = actionId(given);
    if (settled.has(id)) return;
    let action = open.get(id);
    if (action === undefined) {
      action = {
        id,
        identity: { name: 'tool', category: 'integration' },
        call: {},
        input: {},
        announced: false,
        announcedInput: undefined,
        toldAt: now(),
        startedAt: undefined,
        waitsSince: undefined,
        waitedMs: 0,
        passedOn: '',
        outputBytes: 0,
        content: undefined,
        streamed: false,
      };
      open.set(id, action);
    }
    describe(action, update, options.mcpServers);
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
      append(action, output);
    }
    const content = contentText(update.content);
    if (content !== undefined) {
      if (!action.streamed && content.startsWith(action.content ?? '') && !askedPermission && status !== 'pending') {
        append(action, content.slice((action.content ?? '').length));
      }
      if (!askedPermission) action.content = content;
    }
    if (status === 'completed' || status === 'failed') finish(action, status, update);
  }

  /** Settles what the harness left open: at the end of a turn, after a cancel, at its death. */
  function settle(note: string): void {
    for (const action of [...open.values()]) {
      append(action, `${action.passedOn === '' || action.passedOn.endsWith('\n') ? '' : '\n'}[${note}]\n`);
      action.streamed = true;
      finish(action, 'failed', {});
    }
  }

  function hold(id: string): void {
    const action = open.get(id);
    if (action) action.waitsSince ??= now();
  }

  function release(id: string, decision: 'approve' | 'deny'): void {
    if (decision === 'deny') denied.add(id);
    const action = open.get(id);
    if (action?.waitsSince === undefined) return;
    if (action.startedAt !== undefined) action.waitedMs += now() - action.waitsSince;
    else if (decision === 'approve') action.startedAt = now();
    action.waitsSince = undefined;
  }

  return {
    upsert,
    settle,
    /** Of an open action, what a request about it has to say. */
    inQuestion(toolCallId: string | undefined): ActionInQuestion | undefined {
      const action = toolCallId === undefined ? undefined : open.get(actionId(toolCallId));
      if (action === undefined) return undefined;
      const { identity, input, call } = action;
      return { id: action.id, ...identity, input, title: commandOf(input) ?? call.title ?? identity.name };
    },
    /** It waits for a person from now on. */
    hold,
    /** It was decided. Denied: its failure will be that it was not allowed. */
    release,
  };
}

/** The built-in harness says so itself. */
const saysDenied = (update: JsonObject): boolean => asObject(asObject(update._meta)?.runyard)?.denied === true;

/** A command says more than the title that a harness gives it. */
function commandOf(input: unknown): string | undefined {
  const command = asObject(input)?.command;
  if (Array.isArray(command)) return command.map(String).join(' ');
  return asString(command);
}

function describe(action: Action, update: JsonObject, mcpServers: readonly string[]): void {
  const call = { name: asString(update.name), kind: asString(update.kind), title: asString(update.title) };
  action.call = {
    name: call.name ?? action.call.name,
    kind: call.kind ?? action.call.kind,
    title: call.title ?? action.call.title,
  };
  action.identity = identifyTool(action.call, mcpServers);
  const raw = update.rawInput;
  if (raw !== undefined && raw !== null && JSON.stringify(raw) !== '{}') action.input = boundedData(raw);
  else if (!action.announced && action.call.title !== undefined && JSON.stringify(action.input) === '{}') {
    action.input = { title: firstPart(action.call.title, 1000) };
  }
}

/** A harness that streams may also give head and tail of the whole in the end; only then does it replace what was appended. */
function fullOutputOf(raw: JsonObject | undefined): string | undefined {
  return raw?.output_truncated === true ? asString(raw.output) : undefined;
}
