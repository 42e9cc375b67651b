/** What a run may store of what its agents tell: who holds a run token could fill the disk otherwise. */
import type { AgentEvent } from '@runyard/contract/agent-protocol';
import type { Settings } from '@runyard/contract/settings';
import { headOf } from '../../conversations/output.ts';
import type { RunLimits } from '../../executions/run-limits.ts';

/** As the settings have them. */
export const limitsOf = (
  settings: Pick<Settings, 'RUNYARD_RUN_EVENTS_MB' | 'RUNYARD_RUN_TRANSCRIPT_MB'>,
): RunLimits => ({
  eventBytes: settings.RUNYARD_RUN_EVENTS_MB * 1024 * 1024,
  transcriptBytes: settings.RUNYARD_RUN_TRANSCRIPT_MB * 1024 * 1024,
});

/** Columns of `runs`. */
export interface RunCounters {
  readonly event_bytes: number;
  readonly transcript_bytes: number;
  readonly dropped_events: number;
  readonly dropped_lines: number;
}

/** What a row takes beside its JSON, with its index entry: many small events count for what they are, too. */
const rowBytes = 100;

/** Above the limit, for what must not be missing: where turns begin and end, what is asked and decided, how actions end. */
export const reserveBytes = 8 * 1024 * 1024;

/** Of each text in an event that is stored from the reserve. */
const maxReservedText = 16 * 1024;

/** The event as it is stored from the reserve; undefined: it is one of those that are dropped. */
function essentialOf(event: AgentEvent): AgentEvent | undefined {
  switch (event.type) {
    case 'turn_started':
      return { ...event, prompt: headOf(event.prompt, maxReservedText) };
    case 'turn_finished':
      return event.summary === undefined ? event : { ...event, summary: headOf(event.summary, maxReservedText) };
    case 'action_result': {
      const { output: _, ...end } = event;
      return end;
    }
    case 'blocked': {
      const { action, ...asked } = event.request;
      return { ...event, request: { ...asked, ...(action ? { action: { ...action, input: {} } } : {}) } };
    }
    case 'decided':
      return event.message === undefined ? event : { ...event, message: headOf(event.message, maxReservedText) };
    default:
      return undefined;
  }
}

/** The room that one batch of events finds. */
export interface EventBudget {
  /** The row as JSON; undefined: there is no room for it. `toRow` gives the row of an event. */
  take(event: AgentEvent, toRow: (event: AgentEvent) => object): string | undefined;
  /** False: there is no room for the line. */
  takeLine(line: string): boolean;
  /** True from the first event, or line, of the run that found no room. */
  readonly isFull: { readonly events: boolean; readonly transcript: boolean };
  /** What this batch adds to the run's counters. */
  readonly added: { eventBytes: number; transcriptBytes: number; droppedEvents: number; droppedLines: number };
}

/** Starts from the run's counters, which the caller has locked. After the first event without room none but the essential are taken: no holes. */
export function eventBudget(limits: RunLimits, counters: RunCounters): EventBudget {
  const added = { eventBytes: 0, transcriptBytes: 0, droppedEvents: 0, droppedLines: 0 };
  const isFull = { events: Number(counters.dropped_events) > 0, transcript: Number(counters.dropped_lines) > 0 };

  /** The row, where the run's events stay within `limit` with it. */
  function within(limit: number, row: object): string | undefined {
    const json = JSON.stringify(row);
    const bytes = Buffer.byteLength(json) + rowBytes;
    if (Number(counters.event_bytes) + added.eventBytes + bytes > limit) return undefined;
    added.eventBytes += bytes;
    return json;
  }

  return {
    added,
    isFull,
    take(event, toRow) {
      const whole = isFull.events ? undefined : within(limits.eventBytes, toRow(event));
      if (whole !== undefined) return whole;
      isFull.events = true;
      const essential = essentialOf(event);
      const kept = essential && within(limits.eventBytes + reserveBytes, toRow(essential));
      const lost = kept === undefined || (event.type === 'action_result' && event.output !== undefined);
      if (lost) added.droppedEvents += 1;
      return kept;
    },
    takeLine(line) {
      // A batch's lines are one row: the first of them counts for it.
      const bytes = Buffer.byteLength(line) + 1 + (added.transcriptBytes === 0 ? rowBytes : 0);
      const used = Number(counters.transcript_bytes) + added.transcriptBytes;
      if (!isFull.transcript && used + bytes <= limits.transcriptBytes) {
        added.transcriptBytes += bytes;
        return true;
      }
      isFull.transcript = true;
      added.droppedLines += 1;
      return false;
    },
  };
}
