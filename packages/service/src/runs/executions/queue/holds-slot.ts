import { slotPhases } from '../transitions/phases.ts';

/** SQL: the execution `e` takes a slot of its worker and of its team's limit. One that only waits for other runs takes none. */
export const holdsSlot = (e: string): string =>
  `${e}.phase IN ${slotPhases} AND (${e}.awaiting_until IS NULL OR ${e}.awaiting_until < clock_timestamp())`;
