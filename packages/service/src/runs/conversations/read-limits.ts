import type { BodyLimits, Place } from '../../platform/bodies/body-budget.ts';

/** Waits for room to read a conversation that takes `bytes` of memory. */
export type EnterRead = (bytes: number) => Promise<Place | 'busy' | 'gone'>;

const mb = 1024 * 1024;

/**
 * Memory for a long conversation: the order of its events (10 bytes each), a page of events, and the bytes that the
 * client has not read yet.
 */
const longBytes = 16 * mb;

/** Bounds the memory of all conversations that are read at once. Short conversations do not wait behind long ones. */
export const readLimits: BodyLimits = {
  smallBytes: mb,
  small: { total: 32 * mb, perTeam: 24 * mb, perExecution: 8 * mb },
  large: { total: 4 * longBytes, perTeam: 3 * longBytes, perExecution: longBytes },
  requestsPerExecution: 4,
  waiting: 16,
  waitMs: 20_000,
};

/** Returns the largest memory that reading a conversation of `bytes` takes. */
export const readCost = (bytes: number): number => (bytes <= mb ? bytes : longBytes);
