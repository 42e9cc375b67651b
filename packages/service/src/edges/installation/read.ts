import path from 'node:path';
import type { Settings } from '@runyard/contract/settings/settings';
import type { Installation, ServiceReport } from '@runyard/contract/team/installation';
import { productVersion } from '@runyard/system/product-version';
import { readBackedUpAt } from '../../platform/installation/installation.ts';
import { blobsAddress, nameOfAddress } from '../../platform/store/blobs/open-blobs.ts';
import type { Database } from '../../platform/store/database/database.ts';
import {
  boolean,
  defineStatement,
  integer,
  json,
  nullable,
  text,
  timestamp,
} from '../../platform/store/database/statement.ts';
import { serviceSilentSeconds } from '../../runs/executions/lease/heartbeat.ts';
import { listHostedWorkers } from '../workers/connected.ts';

export interface InstallationDeps {
  readonly db: Database;
  readonly serviceInstanceId: string;
  readonly settings: Pick<Settings, 'RUNYARD_DATA_DIR' | 'RUNYARD_BLOBS'>;
  readonly pause: { readonly since: string | null };
}

const storeRow = defineStatement({
  name: 'store_service_report',
  text: 'UPDATE service_instances SET report = $2::jsonb WHERE id = $1',
  row: {},
});

/** Stores what this process says about itself. */
export async function storeReport({ db, serviceInstanceId }: InstallationDeps, report: ServiceReport): Promise<void> {
  await db.query(storeRow, [serviceInstanceId, JSON.stringify(report)]);
}

const readServices = defineStatement({
  name: 'read_services_of_installation',
  text: `
    SELECT report, started_at, seen_at AS last_seen_at, seen_at > clock_timestamp() - interval '${serviceSilentSeconds} seconds' AS is_alive
    FROM service_instances WHERE seen_at > clock_timestamp() - interval '1 hour' ORDER BY started_at, id LIMIT 1000`,
  row: { report: nullable(json<ServiceReport>()), started_at: timestamp, last_seen_at: timestamp, is_alive: boolean },
});

const readGone = defineStatement({
  name: 'read_gone_workers',
  text: `
    SELECT g.worker_id AS worker_host, g.gone_at, g.was_draining, g.version FROM gone_workers g
    WHERE g.gone_at > now() - interval '7 days'
      AND NOT EXISTS (SELECT FROM worker_connections c WHERE c.worker_id = g.worker_id AND c.team_id IS NULL)
    ORDER BY g.gone_at DESC LIMIT 100`,
  row: { worker_host: text(), gone_at: timestamp, was_draining: boolean, version: nullable(text()) },
});

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
    db.query(readServices),
    listHostedWorkers(db),
    db.query(readGone),
    db.query(readDatabase),
    readBackedUpAt(db),
  ]);
  if (database === undefined) throw new Error('the database did not describe itself');
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
