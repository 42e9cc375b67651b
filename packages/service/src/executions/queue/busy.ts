import { placePhases } from '../transitions/phases.ts';

/** SQL: the execution `e` holds a slot, at its worker and in its team's limit. One that only waits for other runs holds none. */
export const holdsSlot = (e: string): string =>
  `${e}.phase IN ${placePhases} AND (${e}.awaiting_until IS NULL OR ${e}.awaiting_until < clock_timestamp())`;
