/** Test support: the work that the domains registered for the nightly sweep. */
import type { ServiceDeps } from '../src/http/server/deps.ts';
import { collectRetention, type RegisteredRetention } from '../src/retention/registered.ts';
import { deleteOldDetail, type RunBatch, start } from '../src/retention/runs.ts';
import { listDomains } from '../src/service.ts';
import type { Database } from '../src/store/database/database.ts';

/** Listing the domains opens nothing, so only the settings of nightly tasks are needed. */
export const registeredRetention: RegisteredRetention = collectRetention(
  listDomains({ settings: { RUNYARD_DATA_DIR: '/nowhere', RUNYARD_RETENTION_AUDIT_DAYS: 400 } } as ServiceDeps),
);

/** Deletes the conversations of the runs of the first batch that ended more than 90 days ago. */
export const deleteDetail = (db: Database): Promise<RunBatch> =>
  deleteOldDetail(db, 90, start, registeredRetention.runDetail);
