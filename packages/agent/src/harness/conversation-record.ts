import type { AgentEventBody } from '@runyard/contract/agent-protocol';
import { maxConversationTextLength } from '@runyard/contract/limits';
import { lastPart, shorten } from '@runyard/contract/shorten';

const maxInputCharacters = 4_000;
/** Of one output: the end says how it went. */
const maxOutputCharacters = 4_000;

export interface ConversationRecord {
  /** Adds what an event says. */
  see(event: AgentEventBody): void;
  /** What was said and done; of a long conversation its end. */
  text(): string;
}

/** Keeps what was said and done in this execution as text, for a harness that has to begin anew in the middle of it. Memory is bounded. */
export function conversationRecord(): ConversationRecord {
  let record = '';
  let role = '';
  /** Of the actions that go on: name and end of the output. */
  const open = new Map<string, { name: string; output: string }>();

  function add(text: string): void {
    record += text;
    // Not for each piece: cutting copies the record.
    if (record.length > 2 * maxConversationTextLength) record = lastPart(record, maxConversationTextLength);
  }

  function say(speaker: string, text: string): void {
    add(role === speaker ? text : `\n\n## ${speaker}\n${text}`);
    role = speaker;
  }

  return {
    see(event) {
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
          const told = typeof event.output === 'string' ? lastPart(event.output, maxOutputCharacters) : output;
          open.delete(event.action_id);
          say('assistant', `\n[${name} ${event.state}]\n${told}\n`);
          return;
        }
        default:
      }
    },
    text: () => lastPart(record.trim(), maxConversationTextLength),
  };
}
