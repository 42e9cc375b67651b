import { maxConversationTextLength } from '@runyard/contract/limits';
import type { AgentEventBody } from '@runyard/contract/runs/agent-events';
import { lastPart, shorten } from '@runyard/contract/wire/shorten';

const maxInputCharacters = 4_000;
/** The record keeps the end of an output, because the end shows the result of the action. */
const maxOutputCharacters = 4_000;

export interface ConversationRecord {
  /** Adds an event to the record of the conversation. */
  add(event: AgentEventBody): void;
  /** Returns the recorded conversation of this execution as text. If the conversation is long, returns only its end. */
  text(): string;
}

/**
 * Records the conversation of this execution as text, in bounded memory. The text is for a harness that is restarted in the middle of
 * the execution.
 */
export function conversationRecord(): ConversationRecord {
  let record = '';
  let role = '';
  /** For each action in progress, its name and the end of its output. */
  const open = new Map<string, { name: string; output: string }>();

  function append(text: string): void {
    record += text;
    // Cutting copies the whole record, so the record is cut only when it has twice the maximum length.
    if (record.length > 2 * maxConversationTextLength) record = lastPart(record, maxConversationTextLength);
  }

  function say(speaker: string, text: string): void {
    append(role === speaker ? text : `\n\n## ${speaker}\n${text}`);
    role = speaker;
  }

  return {
    add(event) {
      switch (event.type) {
        case 'turn_started':
          role = '';
          open.clear();
          say('user', event.prompt);
          return;
        case 'text':
          say(event.role, event.text);
          return;
        case 'action':
          if (!open.has(event.action_id)) open.set(event.action_id, { name: event.name, output: '' });
          say('assistant', `\n[${event.name}: ${shorten(JSON.stringify(event.input) ?? '', maxInputCharacters)}]\n`);
          return;
        case 'action_output': {
          const action = open.get(event.action_id);
          if (action) action.output = lastPart(action.output + event.text, maxOutputCharacters);
          return;
        }
        case 'action_result': {
          const { name = 'tool', output = '' } = open.get(event.action_id) ?? {};
          const outputEnd = typeof event.output === 'string' ? lastPart(event.output, maxOutputCharacters) : output;
          open.delete(event.action_id);
          say('assistant', `\n[${name} ${event.state}]\n${outputEnd}\n`);
          return;
        }
        default:
      }
    },
    text: () => lastPart(record.trim(), maxConversationTextLength),
  };
}
