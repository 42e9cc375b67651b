/** SQL: the execution `e` holds a slot, at its worker and in its team's limit. One that only waits for other runs holds none. */
export const holdsSlot = (e: string): string =>
  `${e}.phase IN ('assigned', 'claimed', 'running') AND (${e}.awaiting_until IS NULL OR ${e}.awaiting_until < clock_timestamp())`;
