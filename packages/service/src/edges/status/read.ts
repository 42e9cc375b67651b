import path from 'node:path';
import type { Settings } from '@runyard/contract/settings/settings';
import type { Installation } from '@runyard/contract/team/installation';
import { productVersion } from '@runyard/system/product-version';
import { readBackedUpAt } from '../../platform/installation/installation.ts';
import { blobsAddress, nameOfAddress } from '../../platform/store/blobs/open-blobs.ts';
import type { Database } from '../../platform/store/database/database.ts';
import { defineStatement, integer, text } from '../../platform/store/database/statement.ts';
import { readGoneWorkers } from '../../runs/executions/lease/connection-rows.ts';
import { readServiceInstances } from '../../runs/executions/lease/heartbeat.ts';
import { listHostedWorkers } from '../workers/connected.ts';

export interface InstallationDeps {
  readonly db: Database;
  readonly serviceInstanceId: string;
  readonly settings: Pick<Settings, 'RUNYARD_DATA_DIR' | 'RUNYARD_BLOBS'>;
  readonly pause: { readonly since: string | null };
}

const readDatabase = defineStatement({
  name: 'read_database_of_installation',
  text: `
    SELECT current_setting('server_version') AS version, pg_database_size(current_database()) AS size_bytes,
      (SELECT name FROM schema_migrations ORDER BY version DESC LIMIT 1) AS migration`,
  row: { version: text(), size_bytes: integer, migration: text() },
});

/** Reads the state of the whole installation. */
export async function readInstallation({ db, settings, pause }: InstallationDeps): Promise<Installation> {
  const [services, workers, gone, [database], lastBackup] = await Promise.all([
    readServiceInstances(db),
    listHostedWorkers(db),
    readGoneWorkers(db),
    db.query(readDatabase),
    readBackedUpAt(db),
  ]);
  if (database === undefined) throw new Error('the query for the state of the database returned no row');
  return {
    version: productVersion(),
    services: services.map(({ report, ...row }) => ({ ...report, ...row })),
    workers,
    gone_workers: gone.map(({ was_draining, version, ...row }) => ({
      ...row,
      reason: was_draining ? 'stopped' : 'lost',
      ...(version === null ? {} : { version }),
    })),
    database,
    blobs: nameOfAddress(blobsAddress(settings, path.resolve(settings.RUNYARD_DATA_DIR))),
    ...(lastBackup === null ? {} : { last_backup_at: lastBackup }),
    ...(pause.since === null ? {} : { paused_since: pause.since }),
  };
}
