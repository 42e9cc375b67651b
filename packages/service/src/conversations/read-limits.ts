import type { BodyLimits, Place } from '../bodies/body-budget.ts';

/** Waits for room to read a conversation that costs so many bytes. */
export type EnterRead = (bytes: number) => Promise<Place | 'busy' | 'gone'>;

const mb = 1024 * 1024;

/** What reading a long conversation may take: the order of its events (10 bytes each), a page of them, and what waits for the client. */
const longBytes = 16 * mb;

/** Conversations that may be read at once, by what they take. Short ones do not wait behind long ones. */
export const readLimits: BodyLimits = {
  smallBytes: mb,
  small: { total: 32 * mb, perTeam: 24 * mb, perExecution: 8 * mb },
  large: { total: 4 * longBytes, perTeam: 3 * longBytes, perExecution: longBytes },
  requestsPerExecution: 4,
  waiting: 16,
  waitMs: 20_000,
};

/** What reading a conversation of so many bytes takes at most. */
export const readCost = (bytes: number): number => (bytes <= mb ? bytes : longBytes);
