/** Test support: runs parts of the nightly sweep, as the domains have registered them. */
import type { ServiceDeps } from '../src/edges/http/server/deps.ts';
import { deleteOldDetail, type RunBatch, start } from '../src/edges/retention/runs.ts';
import { collectRetention, deleteOldRows, type RegisteredRetention } from '../src/edges/retention/sweep.ts';
import type { RowRule } from '../src/platform/domain.ts';
import type { Database } from '../src/platform/store/database/database.ts';
import { listDomains } from '../src/service.ts';

/** The deletion rules of all domains. `listDomains` opens no resources, so the settings that nightly tasks need are enough here. */
export const registeredRetention: RegisteredRetention = collectRetention(
  listDomains({ settings: { RUNYARD_DATA_DIR: '/nowhere', RUNYARD_RETENTION_AUDIT_DAYS: 400 } } as ServiceDeps),
);

/** Deletes a batch of the rows of a rule, and returns their number. */
export const deleteRows = async (db: Database, rule: RowRule): Promise<number> => (await deleteOldRows(db, rule)).rows;

/** Deletes the conversations of the first batch of runs that ended more than 90 days ago. */
export const deleteDetail = (db: Database): Promise<RunBatch> =>
  deleteOldDetail(db, 90, start, registeredRetention.runDetail);
