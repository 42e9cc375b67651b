/** Limits the bytes that the events of a run's agents take. Otherwise a program with the run token could fill the disk. */
import type { AgentEvent } from '@runyard/contract/runs/agent-events';
import type { Settings } from '@runyard/contract/settings/settings';
import { headOf } from '../../conversations/output.ts';
import type { RunLimits } from '../../executions/deps.ts';
import type { TeamRoom } from '../../files/stored-bytes.ts';

/** Returns the limits from the settings, in bytes. */
export const limitsOf = (
  settings: Pick<Settings, 'RUNYARD_RUN_EVENTS_MB' | 'RUNYARD_RUN_TRANSCRIPT_MB' | 'RUNYARD_TEAM_STORAGE_MB'>,
): RunLimits => ({
  eventBytes: settings.RUNYARD_RUN_EVENTS_MB * 1024 * 1024,
  transcriptBytes: settings.RUNYARD_RUN_TRANSCRIPT_MB * 1024 * 1024,
  teamBytes: settings.RUNYARD_TEAM_STORAGE_MB * 1024 * 1024,
});

/** Numbers of bytes and events that a run has stored and dropped so far, from columns of `runs`. */
export interface RunCounters {
  readonly event_bytes: number;
  readonly transcript_bytes: number;
  readonly dropped_events: number;
  readonly dropped_lines: number;
}

/**
 * A database row needs about this many bytes in addition to its JSON, including the index entry. If these bytes did not count, many small
 * events would take much more disk space than the limit allows.
 */
const rowBytes = 100;

/**
 * Number of bytes above the limit that are reserved for essential events: starts and ends of turns, requests, decisions, ends of actions.
 */
export const reserveBytes = 8 * 1024 * 1024;

/** Maximum number of bytes of each text in an essential event that is stored above the limit. */
const maxReservedText = 16 * 1024;

/** Returns the shortened event that is stored above the limit; undefined if the event is not essential. */
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
      const { action, ...request } = event.request;
      return { ...event, request: { ...request, ...(action ? { action: { ...action, input: {} } } : {}) } };
    }
    case 'decided':
      return event.message === undefined ? event : { ...event, message: headOf(event.message, maxReservedText) };
    default:
      return undefined;
  }
}

/** The amounts that a batch adds to the counters of its run. */
export interface AddedCounts {
  readonly eventBytes: number;
  readonly transcriptBytes: number;
  readonly droppedEvents: number;
  readonly droppedLines: number;
}

/** The limit that a batch has reached first: the limit of its run, or the limit of its team. */
export type ReachedLimit = 'run' | 'team';

/** Decides which events and lines of a batch are stored. */
export interface EventBudget {
  /** Counts the row that `toRow` makes of the event, and returns the JSON of the row; undefined if the limits do not allow the row. */
  take(event: AgentEvent, toRow: (event: AgentEvent) => object): string | undefined;
  /** Counts a transcript line; returns false if the limits do not allow the line. */
  takeLine(line: string): boolean;
  /** Returns true if a line of the run was already refused. */
  isTranscriptFull(): boolean;
  /** Returns the limit that the last event or line exceeded. */
  reached(): ReachedLimit;
  /** Returns the amounts that the batch has added to the run's counters. */
  added(): AddedCounts;
}

/**
 * Creates the budget of a batch; the caller has locked the run's row. After the first event that exceeds a limit, only essential events are
 * stored. `room`: bytes that the team may still store.
 */
export function openEventBudget(
  limits: RunLimits,
  counters: RunCounters,
  room: Pick<TeamRoom, 'files' | 'texts'>,
): EventBudget {
  const added = { eventBytes: 0, transcriptBytes: 0, droppedEvents: 0, droppedLines: 0 };
  let isConversationFull = counters.dropped_events > 0;
  let isTranscriptFull = counters.dropped_lines > 0;
  let reached: ReachedLimit = 'run';
  const fits = (bytes: number, ofRun: number, ofTeam: number): boolean => {
    if (bytes <= ofRun && added.eventBytes + added.transcriptBytes + bytes <= ofTeam) return true;
    reached = bytes > ofRun ? 'run' : 'team';
    return false;
  };

  /**
   * Returns the row's JSON if two limits allow the row: the events of the run take at most `limit` bytes, and the events of the batch
   * take at most `roomOfTeam` bytes.
   */
  function within(limit: number, roomOfTeam: number, row: object): string | undefined {
    const json = JSON.stringify(row);
    const bytes = Buffer.byteLength(json) + rowBytes;
    if (!fits(bytes, limit - counters.event_bytes - added.eventBytes, roomOfTeam)) return undefined;
    added.eventBytes += bytes;
    return json;
  }

  return {
    added: () => ({ ...added }),
    isTranscriptFull: () => isTranscriptFull,
    reached: () => reached,
    take(event, toRow) {
      const whole = isConversationFull ? undefined : within(limits.eventBytes, room.files, toRow(event));
      if (whole !== undefined) return whole;
      isConversationFull = true;
      const first = reached;
      const essential = essentialOf(event);
      const essentialRow = essential && within(limits.eventBytes + reserveBytes, room.texts, toRow(essential));
      reached = first;
      const isCut = essentialRow === undefined || (event.type === 'action_result' && event.output !== undefined);
      if (isCut) added.droppedEvents += 1;
      return essentialRow;
    },
    takeLine(line) {
      // All lines of a batch are stored as one row, so add the size of a row only for the first line.
      const bytes = Buffer.byteLength(line) + 1 + (added.transcriptBytes === 0 ? rowBytes : 0);
      const ofRun = limits.transcriptBytes - counters.transcript_bytes - added.transcriptBytes;
      if (!isTranscriptFull && fits(bytes, ofRun, room.files)) {
        added.transcriptBytes += bytes;
        return true;
      }
      isTranscriptFull = true;
      added.droppedLines += 1;
      return false;
    },
  };
}
