import type { AgentEvent } from '@runyard/contract/agent-protocol';
import { isLineStream, redactLine, releaseLine } from './redact-transcript.ts';
import type { Redactor } from './redaction.ts';
import { storable } from './storable.ts';

/** Text held back per stream, as `executions.redaction_tails` keeps it between batches. */
export type Tails = Record<string, string>;

/** More streams at once than any agent has: the pieces held back of the others are let go as they are. */
const maxHeldStreams = 200;

function streamOf(event: AgentEvent): string | null {
  if (event.type === 'text') return `text ${event.message_id}`;
  if (event.type === 'action_output') return `output ${event.action_id}`;
  return null;
}

/** The stream that an event ends: what it held back is let go before it. */
function endedStreams(event: AgentEvent, tails: Tails): string[] {
  if (event.type === 'action_result')
    return Object.keys(tails).filter((stream) => stream === `output ${event.action_id}`);
  if (event.type === 'turn_finished') return Object.keys(tails);
  return [];
}

/**
 * The one place where an agent's text enters the store: secrets out, over the borders of pieces and lines too, and NUL replaced.
 * A stream's held text is put at the end of its last stored piece when the stream ends. Changes `tails`.
 */
export function redactEvents(events: readonly AgentEvent[], redactor: Redactor, tails: Tails): AgentEvent[] {
  const stored: AgentEvent[] = [];
  for (const event of events) {
    for (const stream of endedStreams(event, tails)) stored.push(...flush(event, stream, tails));
    for (const stream of Object.keys(tails).slice(maxHeldStreams)) stored.push(...flush(event, stream, tails));
    if (event.type === 'transcript') {
      const lines = redactLine(storable(event.line) as string, redactor, tails);
      stored.push(...lines.map((line) => ({ ...event, line })));
      continue;
    }
    const stream = streamOf(event);
    if (stream === null || (event.type !== 'text' && event.type !== 'action_output')) {
      stored.push(storable(redactor.value(event)) as AgentEvent);
      continue;
    }
    const piece = redactor.piece(tails[stream] ?? '', storable(event.text) as string);
    if (piece.held) tails[stream] = piece.held;
    else delete tails[stream];
    stored.push({ ...event, text: piece.text });
  }
  return stored;
}

/** The held text as a piece of its own; a secret's beginning that never went on is no secret. */
function flush(ending: AgentEvent, stream: string, tails: Tails): AgentEvent[] {
  if (isLineStream(stream)) {
    const line = releaseLine(stream, tails);
    return line === undefined ? [] : [{ seq: ending.seq, occurred_at: ending.occurred_at, type: 'transcript', line }];
  }
  const text = tails[stream];
  delete tails[stream];
  if (!text) return [];
  const base = { seq: ending.seq, occurred_at: ending.occurred_at, text };
  const id = stream.slice(stream.indexOf(' ') + 1);
  if (stream.startsWith('output ')) return [{ ...base, type: 'action_output', action_id: id }];
  return [
    { ...base, type: 'text', message_id: id, role: 'assistant', step_id: 'step_id' in ending ? ending.step_id : '' },
  ];
}
