import { setTimeout as sleep } from 'node:timers/promises';
import type { WorkerMessage } from '@runyard/contract/workers/worker-protocol';

/** A message and its number. The first message of this process has the number 1. */
export interface KeptMessage {
  readonly number: number;
  readonly message: WorkerMessage;
}

/** Messages that the service has not confirmed, in order. The messages are sent again on each new connection. */
export interface Outbox {
  keep(message: WorkerMessage): KeptMessage;
  /** Drops all messages up to this number, because the service has applied them. */
  confirm(number: number): void;
  readonly kept: () => readonly KeptMessage[];
  /** Resolves when the service has confirmed every message. */
  drained(): Promise<void>;
}

/** Creates an empty outbox. Calls `onConfirmed` with messages that the service has confirmed. */
export function createOutbox(onConfirmed: (messages: readonly WorkerMessage[]) => void = () => {}): Outbox {
  let messages: KeptMessage[] = [];
  let last = 0;
  return {
    keep(message) {
      last += 1;
      const entry = { number: last, message };
      messages.push(entry);
      return entry;
    },
    confirm(number) {
      const confirmed = messages.filter((kept) => kept.number <= number);
      messages = messages.filter((kept) => kept.number > number);
      if (confirmed.length > 0) onConfirmed(confirmed.map(({ message }) => message));
    },
    kept: () => messages,
    async drained() {
      while (messages.length > 0) await sleep(5);
    },
  };
}
