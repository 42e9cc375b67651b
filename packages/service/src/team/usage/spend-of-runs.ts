/**
 * Returns SQL for the US dollars that a run and all its descendants have spent, as budgets count them. `run`: SQL for the id of the run.
 */
export const spendOf = (run: string): string => `(SELECT spent_usd FROM run_spend WHERE run_id = ${run})`;
