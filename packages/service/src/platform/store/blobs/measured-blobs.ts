import { count } from '../../metrics/record.ts';
import type { BlobStore } from './blobs.ts';

type Operation = 'put' | 'get' | 'delete';

/** Counts an operation by its result. */
async function counted<T>(operation: Operation, work: Promise<T>, resultOf: (value: T) => string): Promise<T> {
  try {
    const value = await work;
    count('runyard_blob_operations_total', { operation, result: resultOf(value) });
    return value;
  } catch (error) {
    count('runyard_blob_operations_total', { operation, result: 'failed' });
    throw error;
  }
}

/** Returns a store that does the same and counts the operations for the metrics. */
export const measuredBlobs = (blobs: BlobStore): BlobStore => ({
  ...blobs,
  put: async (key, body, limits) => {
    const stored = await counted('put', blobs.put(key, body, limits), ({ outcome }) =>
      outcome === 'stored' ? 'done' : outcome,
    );
    if (stored.outcome === 'stored') count('runyard_blob_written_bytes_total', {}, stored.sizeBytes);
    return stored;
  },
  get: (key, range) => counted('get', blobs.get(key, range), (blob) => (blob ? 'done' : 'missing')),
  delete: (key) => counted('delete', blobs.delete(key), () => 'done'),
});
