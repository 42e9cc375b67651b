import type { WorkerMessage } from '@runyard/contract/worker-protocol';

/** A message and its number, counted from 1 in this process. */
export interface KeptMessage {
  readonly number: number;
  readonly message: WorkerMessage;
}

/** Messages that the service has not confirmed, in order. They are sent again on each new connection. */
export interface Outbox {
  keep(message: WorkerMessage): KeptMessage;
  /** Drops all messages up to this number: the service has applied them. */
  confirm(number: number): void;
  readonly kept: () => readonly KeptMessage[];
}

export function createOutbox(onConfirmed: () => void = () => {}): Outbox {
  let messages: KeptMessage[] = [];
  let last = 0;
  return {
    keep(message) {
      last += 1;
      const kept = { number: last, message };
      messages.push(kept);
      return kept;
    },
    confirm(number) {
      const before = messages.length;
      messages = messages.filter((kept) => kept.number > number);
      if (messages.length < before) onConfirmed();
    },
    kept: () => messages,
  };
}
