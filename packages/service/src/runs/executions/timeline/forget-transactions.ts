import type { Statement } from '../../../platform/store/database/database.ts';

/**
 * Removes from events in a copied database the transaction numbers that this database has not assigned yet. Part of the transaction in
 * which `edges/live/epoch.ts` renews the epoch.
 */
export const forgetFutureTransactions: Statement = {
  name: 'forget_future_transactions_of_events',
  text: `UPDATE run_events SET xact = '0' WHERE xact > '0' AND xact >= pg_current_xact_id()`,
};
