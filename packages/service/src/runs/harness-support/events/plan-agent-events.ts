import type { AgentEvent, BaseCommit } from '@runyard/contract/runs/agent-events';
import type { Redactor } from '@runyard/system/redaction/redactor';
import { type HeldTexts, redactEvents } from '../../../team/redaction/redact-events.ts';
import type { RunLimits } from '../../executions/deps.ts';
import type { OpenRequest } from '../../executions/idle/debug-window.ts';
import type { Phase } from '../../executions/phases.ts';
import type { TeamRoom } from '../../files/stored-bytes.ts';
import {
  type AddedCounts,
  type EventBudget,
  openEventBudget,
  type ReachedLimit,
  type RunCounters,
} from './event-budget.ts';
import { type EventRow, fullTranscriptReport, rowOf, stepOf, timeOf } from './event-rows.ts';

/** Input of the plan: values from rows that the caller has locked, and the limits of the service. */
export interface PlanInput {
  readonly events: readonly AgentEvent[];
  readonly execution: {
    readonly phase: Phase;
    /** Number of the last event of the agent that was applied. */
    readonly lastSeq: number;
    readonly heldTexts: HeldTexts;
  };
  readonly run: RunCounters & {
    /** Id of the assignment if the worker has not claimed it yet; otherwise null. */
    readonly assignment_id: string | null;
  };
  readonly limits: RunLimits;
  /** Bytes that the team may still store. */
  readonly room: Pick<TeamRoom, 'files' | 'texts'>;
  readonly redactor: Redactor;
  /** Time that is stored for events without a valid time. */
  readonly now: Date;
}

/** A checkpoint that the agent begins, or the agent's report that no file has changed since its last archive. */
export type CheckpointMark = Pick<
  Extract<AgentEvent, { type: 'checkpoint' }>,
  'number' | 'state' | 'turn' | 'done_blocks'
>;

/** One change that the events of a batch cause. */
export type EventAction =
  /** Stores rows; each row is the JSON that `storeAgentEvents` reads, and `bytes` is the size that counts for the limits. */
  | { readonly kind: 'store_events'; readonly rows: readonly string[]; readonly bytes: number }
  /**
   * Reports that the conversation has reached its limit. The report belongs to the step `stepId` or, if it is undefined, to the newest step
   * of the stored conversation.
   */
  | {
      readonly kind: 'report_full_conversation';
      readonly occurredAt: string;
      readonly stepId: string | undefined;
      readonly reached: ReachedLimit;
    }
  | { readonly kind: 'take_follow_up'; readonly followUpId: string }
  /** Starts the run; if `assignmentId` is present, claims this assignment first. */
  | {
      readonly kind: 'start_run';
      readonly assignmentId: string | undefined;
      readonly harness: string;
      readonly modelId: string;
      /** The commits that the agent has cloned; undefined: it cloned nothing. */
      readonly baseCommits: readonly BaseCommit[] | undefined;
    }
  | { readonly kind: 'block_run'; readonly request: OpenRequest }
  | { readonly kind: 'mark_checkpoint'; readonly checkpoint: CheckpointMark };

/**
 * The effects of a batch of events, for one transaction. The transaction executes the actions in order, and then stores the other members.
 */
export interface EventPlan {
  /** Number of the last event whose effects the plan contains. */
  readonly acknowledged: number;
  readonly actions: readonly EventAction[];
  /** Lines to add to the transcript, each with a line feed; '' if there are none. */
  readonly transcript: string;
  readonly heldTexts: HeldTexts;
  readonly added: AddedCounts;
}

/** Returns the events that follow `lastSeq` without a gap, in order. */
function newEvents(events: readonly AgentEvent[], lastSeq: number): AgentEvent[] {
  const fresh: AgentEvent[] = [];
  for (const event of events) if (event.seq === lastSeq + fresh.length + 1) fresh.push(event);
  return fresh;
}

/** Collects the actions of a batch. Rows are collected too, and are stored together before the next action that needs them to be stored. */
function collectActions(budget: EventBudget, now: Date) {
  const actions: EventAction[] = [];
  let rows: string[] = [];
  let countedBytes = 0;
  const placed = (row: EventRow) => ({ position: rows.length, ...row });
  return {
    actions,
    /** Adds the row of the event if the limits allow it. */
    takeRow(event: AgentEvent): void {
      const json = budget.take(event, (kept) => placed(rowOf(kept, now)));
      if (json !== undefined) rows.push(json);
    },
    /** Adds a row that does not count against the limits. This is for reports of the service that occur at most once in a run. */
    addRow(row: EventRow): void {
      rows.push(JSON.stringify(placed(row)));
    },
    storeRows(): void {
      if (rows.length === 0) return;
      const { eventBytes } = budget.added();
      actions.push({ kind: 'store_events', rows, bytes: eventBytes - countedBytes });
      countedBytes = eventBytes;
      rows = [];
    },
  };
}

/**
 * Plans the effects of those events of a batch that were not applied before, up to the first gap in their numbers. Removes secrets from the
 * events. Returns undefined if no event is new. Reads and writes no data.
 */
export function planAgentEvents(input: PlanInput): EventPlan | undefined {
  const { execution, run, limits, redactor, now } = input;
  const events = newEvents(input.events, execution.lastSeq);
  if (events.length === 0) return undefined;
  const heldTexts = { ...execution.heldTexts };
  const budget = openEventBudget(limits, run, input.room);
  const collected = collectActions(budget, now);
  const { actions } = collected;
  let transcript = '';
  let unclaimed = execution.phase === 'assigned' ? (run.assignment_id ?? undefined) : undefined;

  const planLine = (event: Extract<AgentEvent, { type: 'transcript' }>): void => {
    const wasFull = budget.isTranscriptFull();
    if (budget.takeLine(event.line)) transcript += `${event.line}\n`;
    else if (!wasFull) {
      const report = fullTranscriptReport(limits, budget.reached(), timeOf(event, now));
      transcript += `${report.line}\n`;
      collected.addRow(report.row);
    }
  };

  const planRow = (event: AgentEvent): void => {
    const wasReported = run.dropped_events + budget.added().droppedEvents > 0;
    collected.takeRow(event);
    if (!wasReported && budget.added().droppedEvents > 0) {
      collected.storeRows();
      actions.push({
        kind: 'report_full_conversation',
        occurredAt: timeOf(event, now),
        stepId: stepOf(event),
        reached: budget.reached(),
      });
    }
  };

  for (const event of redactEvents(events, redactor, heldTexts)) {
    switch (event.type) {
      case 'transcript':
        planLine(event);
        break;
      case 'follow_up_taken':
        // A stopping agent begins no further turn, so leave the follow-up for the next execution.
        if (execution.phase !== 'stopping') actions.push({ kind: 'take_follow_up', followUpId: event.follow_up_id });
        break;
      case 'agent_started': {
        const { harness, model_id: modelId, base_commits: baseCommits } = event;
        collected.storeRows();
        actions.push({ kind: 'start_run', assignmentId: unclaimed, harness, modelId, baseCommits });
        unclaimed = undefined;
        break;
      }
      case 'checkpoint':
        // Store the rows before this action, because a checkpoint marks the position after them in the conversation.
        collected.storeRows();
        actions.push({ kind: 'mark_checkpoint', checkpoint: event });
        break;
      case 'blocked':
        planRow(event);
        collected.storeRows();
        actions.push({ kind: 'block_run', request: { ...event.request, asked_at: timeOf(event, now) } });
        break;
      default:
        planRow(event);
    }
  }
  collected.storeRows();
  return {
    acknowledged: execution.lastSeq + events.length,
    actions,
    transcript,
    heldTexts,
    added: budget.added(),
  };
}
