import type { AgentEvent } from '@runyard/contract/runs/agent-events';
import { storable } from '@runyard/contract/wire/storable-json';
import type { Redactor } from '@runyard/system/redaction/redactor';
import type { HeldTexts } from './held-texts.ts';
import { redactLine, releaseLine } from './redact-line.ts';
import { isLineStream } from './transcript-line.ts';

/** More streams than any agent has open at once. The held texts of further streams are released. */
const maxHeldStreams = 200;

function streamOf(event: AgentEvent): string | null {
  if (event.type === 'text') return `text ${event.message_id}`;
  if (event.type === 'action_output') return `output ${event.action_id}`;
  return null;
}

/** Returns the streams that an event ends. Their held texts are released before the event. */
function endedStreams(event: AgentEvent, held: HeldTexts): string[] {
  if (event.type === 'action_result')
    return Object.keys(held).filter((stream) => stream === `output ${event.action_id}`);
  if (event.type === 'turn_finished') return Object.keys(held);
  return [];
}

/**
 * Redacts the events of an agent. All of an agent's events pass here before they are stored. Removes secrets, even those that span
 * pieces or lines, and replaces NUL. May return more events than it was given, because each released text becomes a piece of its own.
 * Changes `held`.
 */
export function redactEvents(events: readonly AgentEvent[], redactor: Redactor, held: HeldTexts): AgentEvent[] {
  const stored: AgentEvent[] = [];
  for (const event of events) {
    for (const stream of endedStreams(event, held)) stored.push(...release(event, stream, held));
    for (const stream of Object.keys(held).slice(maxHeldStreams)) stored.push(...release(event, stream, held));
    if (event.type === 'transcript') {
      const lines = redactLine(storable(event.line) as string, redactor, held);
      stored.push(...lines.map((line) => ({ ...event, line })));
      continue;
    }
    const stream = streamOf(event);
    if (stream === null || (event.type !== 'text' && event.type !== 'action_output')) {
      stored.push(storable(redactor.value(event)) as AgentEvent);
      continue;
    }
    const piece = redactor.piece(held[stream] ?? '', storable(event.text) as string);
    if (piece.held) held[stream] = piece.held;
    else delete held[stream];
    stored.push({ ...event, text: piece.text });
  }
  return stored;
}

/**
 * Returns the held text of a stream as an event with the number and time of `next`. The text is no secret, because no secret continued.
 */
function release(next: AgentEvent, stream: string, held: HeldTexts): AgentEvent[] {
  const at = { seq: next.seq, occurred_at: next.occurred_at };
  if (isLineStream(stream)) {
    const line = releaseLine(stream, held);
    return line === undefined ? [] : [{ ...at, type: 'transcript', line }];
  }
  const text = held[stream];
  delete held[stream];
  if (!text) return [];
  const id = stream.slice(stream.indexOf(' ') + 1);
  if (stream.startsWith('output ')) return [{ ...at, text, type: 'action_output', action_id: id }];
  const step_id = 'step_id' in next ? next.step_id : '';
  return [{ ...at, text, type: 'text', message_id: id, role: 'assistant', step_id }];
}
