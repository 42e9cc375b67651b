import { StoreUnavailable } from './unavailable.ts';

/**
 * Does the work of a sweep for each row, one after the other. A row that fails is passed to `onFailure` and does not delay the others,
 * in whatever order a sweep finds them. Throws `StoreUnavailable`, because the other rows would fail for the same reason.
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
