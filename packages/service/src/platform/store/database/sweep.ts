import { backoffMs } from '@runyard/system/backoff';
import { StoreUnavailable } from './unavailable.ts';

/** The first and the longest wait between two tries of a row whose work fails, in milliseconds. */
const defaultRetry = { firstMs: 1_000, longestMs: 60_000 };

interface Failed {
  readonly failures: number;
  /** The row is not tried again before this time of `performance.now()`. */
  readonly notBefore: number;
}

/** The rows of a sweep whose last attempt failed, by their ids. The map lives as long as the loop of the sweep. */
export type FailedRows = Map<string, Failed>;

/** The functions of one round of a sweep. They read the rows and do the work. */
export interface Sweep<Row> {
  readonly firstPage: () => Promise<readonly Row[]>;
  /** Returns the next rows whose ids are greater than `id`, in the order of their ids. */
  readonly pageAfter: (id: string) => Promise<readonly Row[]>;
  /** Number of rows of a full page. A page with fewer rows is the last page. */
  readonly pageSize: number;
  readonly idOf: (row: Row) => string;
  readonly work: (row: Row) => Promise<unknown>;
  /** `failures`: how often the work of this row has failed in this process since it last succeeded. */
  readonly onFailure: (row: Row, error: unknown, failures: number) => void;
  readonly failed: FailedRows;
  /** The first and the longest wait between two tries of a row. Each wait is twice as long as the wait before. Default: 1 s and 60 s. */
  readonly retry?: { readonly firstMs: number; readonly longestMs: number };
  /** If aborted, the round ends before it reads the next page. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Does the work for all rows, page by page, in one round. A row whose work failed is tried again in a later round, and the wait
 * doubles with each failure. So rows that always fail do not delay later rows. Returns the number of rows found.
 * Throws `StoreUnavailable` if the work of a row throws it.
 */
export async function sweepPages<Row>(sweep: Sweep<Row>): Promise<number> {
  const { pageSize, idOf, failed, signal, retry = defaultRetry } = sweep;
  const found = new Set<string>();
  const work = async (row: Row) => {
    await sweep.work(row);
    failed.delete(idOf(row));
  };
  const onFailure = (row: Row, error: unknown) => {
    const failures = (failed.get(idOf(row))?.failures ?? 0) + 1;
    failed.set(idOf(row), { failures, notBefore: performance.now() + backoffMs(retry, failures) });
    sweep.onFailure(row, error, failures);
  };
  let page = await sweep.firstPage();
  while (page.length > 0) {
    for (const row of page) found.add(idOf(row));
    const due = page.filter((row) => (failed.get(idOf(row))?.notBefore ?? 0) <= performance.now());
    await eachAlone(due, work, onFailure);
    const last = page.length < pageSize ? undefined : page.at(-1);
    if (signal?.aborted) return found.size;
    page = last === undefined ? [] : await sweep.pageAfter(idOf(last));
  }
  // Forget failed rows that were not found in this round: another process has handled or deleted them.
  for (const id of failed.keys()) if (!found.has(id)) failed.delete(id);
  return found.size;
}

/**
 * Does the work of a sweep for each row, one after the other. If the work of a row fails, calls `onFailure` and continues with the
 * next row. If the work throws `StoreUnavailable`, stops and throws this error, because the other rows would fail for the same reason.
 */
export async function eachAlone<Row>(
  rows: Iterable<Row>,
  work: (row: Row) => Promise<unknown>,
  onFailure: (row: Row, error: unknown) => void,
): Promise<void> {
  for (const row of rows) {
    try {
      await work(row);
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error;
      onFailure(row, error);
    }
  }
}
