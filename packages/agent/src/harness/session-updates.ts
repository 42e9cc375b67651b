import type { AgentEventBody } from '@runyard/contract/runs/agent-events';
import { joinHalves, lastPart, partsOf } from '@runyard/contract/wire/shorten';
import { maxTextChunk } from '../acp/limits.ts';
import { asObject, asString, blockText, boundedData, type JsonObject } from '../acp/tool-output.ts';
import { newId } from '../new-id.ts';
import { type ActionInQuestion, type ActionsOptions, trackActions } from './actions.ts';

export interface NormaliserOptions extends Pick<ActionsOptions, 'openOutput'> {
  emit: (event: AgentEventBody) => void;
  stepId: () => string;
  mcpServers: readonly string[];
  /** Returns true if the harness must ask for permission before each command and each change. */
  mustAsk?: () => boolean;
}

/** Thoughts come in small pieces. The pieces are collected and emitted in parts of about this many characters. */
const thoughtChars = 4_000;

/** Turns the chunks of messages and thoughts into events. */
function textUpdates(
  { emit, stepId }: Pick<NormaliserOptions, 'emit' | 'stepId'>,
  notice: (name: string, data: unknown) => void,
) {
  let messageId: string | undefined;
  let harnessMessageId: string | undefined;
  /** Joins the halves of an emoji that a harness sends in two chunks. Messages and thoughts have separate joiners. */
  const halves = joinHalves();
  const thoughtHalves = joinHalves();
  let thought = '';
  let lastText = '';

  function emitThought(): void {
    if (thought.trim() !== '') notice('thought', { text: thought.toWellFormed() });
    thought = '';
  }

  function endThought(): void {
    thought += thoughtHalves.end();
    emitThought();
  }

  function endMessage(): void {
    say(halves.end());
    messageId = undefined;
  }

  /** Ends the current message. Called when an update arrives that is not text of this message. */
  function interruptText(): void {
    endThought();
    endMessage();
  }

  function say(text: string): void {
    if (messageId === undefined) return;
    lastText = lastPart(lastText + text, 16 * 1024);
    for (const part of partsOf(text, maxTextChunk)) {
      emit({ type: 'text', step_id: stepId(), message_id: messageId, role: 'assistant', text: part });
    }
  }

  function text(update: JsonObject): void {
    const text = blockText(update.content);
    if (text === undefined || text === '') return;
    const theirs = asString(update.messageId);
    endThought();
    if (theirs !== undefined && theirs !== harnessMessageId) endMessage();
    if (messageId === undefined) {
      messageId = newId();
      lastText = '';
    }
    harnessMessageId = theirs;
    say(halves.push(text));
  }

  return {
    text,
    interruptText,
    addThought: (text: string): void => {
      thought += thoughtHalves.push(text);
      if (thought.length >= thoughtChars) emitThought();
    },
    startTurn: (): void => {
      lastText = '';
    },
    lastText: () => lastText,
  };
}

/** Turns the session updates of a harness into agent events. The updates are untrusted and may have any shape. */
export function sessionUpdates(options: NormaliserOptions) {
  const { emit, stepId } = options;
  const actions = trackActions({
    ...options,
    onUnasked: (action) => {
      if (options.mustAsk?.() === true) notice('ran_without_question', action);
    },
  });
  let usage: JsonObject | undefined;
  const notice = (name: string, data: unknown) =>
    emit({ type: 'notice', step_id: stepId(), name, data: boundedData(data, 8 * 1024) });
  const { text, interruptText, addThought, startTurn, lastText } = textUpdates(options, notice);

  function update(value: unknown): void {
    const update = asObject(value);
    const kind = asString(update?.sessionUpdate);
    if (update === undefined || kind === undefined) return;
    switch (kind) {
      case 'agent_message_chunk':
        text(update);
        return;
      case 'agent_thought_chunk':
        addThought(blockText(update.content) ?? '');
        return;
      case 'tool_call':
      case 'tool_call_update':
        interruptText();
        actions.upsert(update);
        return;
      case 'usage_update':
        usage = update;
        return;
      // Ignore repetitions of our prompt, and updates that only an editor needs. They are still in the transcript.
      case 'user_message_chunk':
      case 'available_commands_update':
      case 'config_option_update':
      case 'session_info_update':
        return;
      default: {
        interruptText();
        const { sessionUpdate: _, ...data } = update;
        notice(kind === 'current_mode_update' ? 'mode' : kind, data);
      }
    }
  }

  return {
    update,
    /** Returns the action that a permission request is about; undefined if the request names no open action. */
    permission(toolCall: unknown): ActionInQuestion | undefined {
      interruptText();
      const call = asObject(toolCall) ?? {};
      actions.upsert(call, true);
      return actions.inQuestion(asString(call.toolCallId));
    },
    /** Resolves when the ends of all ended actions were emitted: a whole output is uploaded first. */
    get keeping(): Promise<void> {
      return actions.keeping;
    },
    hold: actions.hold,
    release: actions.release,
    notice,
    startTurn,
    /** Ends a turn: settles open actions with `note` and emits collected thoughts and usage. */
    endTurn(note: string): void {
      interruptText();
      actions.settle(note);
      if (usage !== undefined) notice('usage', { used: usage.used, size: usage.size });
      usage = undefined;
    },
    /** Returns the end of the last message, for the summary of the turn. */
    get lastText(): string {
      return lastText();
    },
  };
}

export type SessionUpdates = ReturnType<typeof sessionUpdates>;
