import type { Message } from '@runyard/contract/runs/conversations';
import type { Database } from '../../platform/store/database/database.ts';
import { beginsItem, beginsStep, type ConversationOrder, readInOrder } from './order.ts';
import { type Replay, startReplay } from './replay.ts';

/**
 * A part of a conversation. The parts come in the order of the conversation: a step, then the messages of the step. The pieces of a long
 * text follow the start of their message.
 */
export type ConversationPart =
  | { readonly kind: 'step'; readonly id: string; readonly startedAt: string }
  | { readonly kind: 'message'; readonly message: Message }
  /** A message without its text: the pieces of the text follow, then `text_end`. */
  | { readonly kind: 'text_start'; readonly message: Omit<Message, 'content'>; readonly messageId: string }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'text_end' }
  | { readonly kind: 'step_end'; readonly completedAt?: string; readonly summary?: string };

/** A run whose conversation is read. */
export interface PartsOfRun {
  readonly runId: string;
  readonly order: ConversationOrder;
  /** The execution that sent the last event. Open actions of earlier executions count as interrupted. */
  readonly lastExecutionId: string | undefined;
  /** True if open actions of the last execution count as interrupted too. */
  readonly isOver: boolean;
}

/** Reads the parts of a run's conversation. Holds only one message and one piece of a text in memory. */
export async function* partsOfRun(
  db: Database,
  { runId, order, lastExecutionId, isOver }: PartsOfRun,
): AsyncGenerator<ConversationPart> {
  let item: { readonly replay: Replay; readonly wasInterrupted: boolean } | undefined;
  let inText = false;
  let end: Extract<ConversationPart, { kind: 'step_end' }> | undefined;

  function* endItem(): Generator<ConversationPart> {
    if (inText) yield { kind: 'text_end' };
    inText = false;
    if (item === undefined) return;
    const { replay, wasInterrupted } = item;
    item = undefined;
    if (wasInterrupted) replay.endRun();
    for (const step of replay.read().steps) for (const message of step.messages) yield { kind: 'message', message };
  }

  for await (const placed of readInOrder(db, runId, order)) {
    const { event } = placed;
    if (placed.mark & beginsItem) yield* endItem();
    if (placed.mark & beginsStep) {
      if (end) yield end;
      end = { kind: 'step_end' };
      yield { kind: 'step', id: 'step_id' in event ? event.step_id : '', startedAt: event.occurred_at };
    }
    if (event.type === 'turn_finished') {
      const { summary = end?.summary, occurred_at } = event;
      end = { kind: 'step_end', completedAt: occurred_at, ...(summary === undefined ? {} : { summary }) };
    } else if (event.type === 'text') {
      if (!inText) {
        const { role, occurred_at, message_id } = event;
        const message = { role, timestamp: occurred_at, message_ids: [message_id] };
        yield { kind: 'text_start', message, messageId: message_id };
        inText = true;
      }
      yield { kind: 'text', text: event.text };
    } else {
      item ??= { replay: startReplay(''), wasInterrupted: isOver || placed.executionId !== lastExecutionId };
      item.replay.apply(event);
    }
  }
  yield* endItem();
  if (end) yield end;
}
