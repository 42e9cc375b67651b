/**
 * Notices that are sent after a commit. A statement says what it changes with result columns whose names begin with `runyard_`: the name
 * of the column is the channel, each value that is not NULL is the payload of a notice. The database layer reads these columns of every
 * result and sends the notices after the commit, so no caller can forget a notice. A NOTIFY inside of the commit would take a lock over
 * the whole database until the commit is on disk, and all transactions that notify would be written to disk one after the other.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';

/** Each entry is a channel, a space, and a payload. */
export type NoticeSet = Set<string>;

const prefix = 'runyard_';

/** Adds the notices of a result to `notices`. A text with several statements has neither `fields` nor notices. */
export function collectNotices(
  { fields = [], rows }: { readonly fields?: readonly pg.FieldDef[]; readonly rows: readonly object[] },
  notices: NoticeSet,
): void {
  for (const { name } of fields) {
    if (!name.startsWith(prefix)) continue;
    for (const row of rows) {
      const { [name]: payload } = row as Record<string, unknown>;
      if (payload !== null) notices.add(`${name} ${payload}`);
    }
  }
}

export function partsOf(notice: string): { readonly channel: string; readonly payload: string } {
  const end = notice.indexOf(' ');
  return { channel: notice.slice(0, end), payload: notice.slice(end + 1) };
}

/** Minimum time between two batches of notices, in milliseconds. */
const pauseMs = 5;

export interface NoticeSender {
  /** Sends notices to the other processes, together with all notices that arrive until the next batch. */
  send(notices: Iterable<string>): void;
  /** Waits until all notices are sent. */
  flush(): Promise<void>;
}

/** Makes a sender. `sendBatch` must not reject. */
export function makeNoticeSender(
  sendBatch: (channels: readonly string[], payloads: readonly string[]) => Promise<void>,
): NoticeSender {
  let waiting: NoticeSet = new Set();
  let sending: Promise<void> | undefined;
  const sendAll = async () => {
    while (waiting.size > 0) {
      const batch = [...waiting].map(partsOf);
      waiting = new Set();
      const sent = sendBatch(
        batch.map(({ channel }) => channel),
        batch.map(({ payload }) => payload),
      );
      await Promise.all([sent, delay(pauseMs)]);
    }
    sending = undefined;
  };
  return {
    send: (notices) => {
      for (const notice of notices) waiting.add(notice);
      if (waiting.size > 0) sending ??= sendAll();
    },
    flush: async () => await sending,
  };
}
