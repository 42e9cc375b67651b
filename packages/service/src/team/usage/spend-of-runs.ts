/** Returns SQL of the US dollars that a run and all runs below it have spent, as budgets count them. `run`: SQL of its id. */
export const spendOf = (run: string): string => `(SELECT spent_usd FROM run_spend WHERE run_id = ${run})`;
