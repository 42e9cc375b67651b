import { existsSync } from 'node:fs';
import path from 'node:path';
import { inspectDatabase } from '@runyard/service/inspect-database';
import { type Context, dataPlace } from '../context.ts';
import { formatAgo } from '../live/times.ts';
import type { Finding } from './finding.ts';

const name = 'database';

/**
 * Checks that the embedded PostgreSQL is installed or, if RUNYARD_DATABASE_URL is set, that this server answers and is new enough.
 * Checks nothing if the machine uses the service of RUNYARD_BASE_URL and has no database.
 */
export async function checkDatabase(context: Context): Promise<Finding> {
  const { RUNYARD_BASE_URL: service, RUNYARD_DATABASE_URL: server } = context.settings;
  if (service !== undefined && server === undefined && !existsSync(path.join(context.folder.path, 'postgres')))
    return { name, level: 'fact', detail: `no database on this machine, which uses the service at ${service}` };
  const found = await inspectDatabase(context.settings.RUNYARD_DATABASE_URL);
  switch (found.kind) {
    case 'embedded':
      return { name, level: 'good', detail: `embedded PostgreSQL ${found.version} in the data folder` };
    case 'embedded_missing':
      return { name, level: 'bad', detail: found.reason };
    case 'server':
      return { name, level: 'good', detail: `PostgreSQL ${found.version} at ${found.address}` };
    case 'server_unusable':
      return {
        name,
        level: 'bad',
        detail: `the server of RUNYARD_DATABASE_URL cannot be used: ${found.reason}`,
        ...(found.fix === undefined ? {} : { fix: found.fix }),
      };
  }
}

/** Checks that the buckets of RUNYARD_BLOBS and RUNYARD_BLOBS_FROM can be used. Checks nothing if there is no bucket. */
export async function checkBlobs(context: Context): Promise<Finding[]> {
  const { RUNYARD_BLOBS: present, RUNYARD_BLOBS_FROM: from } = context.settings;
  const buckets = [present, from].flatMap((place) => (place?.kind === 's3' ? [place.bucket] : []));
  if (buckets.length === 0) return [];
  const { findBlobsProblem } = await import('@runyard/service/transfer');
  const problem = await findBlobsProblem(dataPlace(context));
  if (problem === null) return [{ name: 'blobs', level: 'good', detail: `in the bucket ${buckets.join(' and ')}` }];
  const fix =
    'check RUNYARD_BLOBS and the variables of the AWS SDK (AWS_ENDPOINT_URL_S3, AWS_REGION, AWS_ACCESS_KEY_ID, …)';
  return [{ name: 'blobs', level: 'bad', detail: problem, fix }];
}

/** If the last backup is older than this, doctor reports it, because then a nightly backup has failed several times. */
const oldBackupMs = 7 * 24 * 3600 * 1000;

/** Reports how old the last backup is. Reports nothing if the database does not answer. */
export async function checkLastBackup(context: Context, now: Date): Promise<Finding[]> {
  const { readLastBackup } = await import('@runyard/service/installation-commands');
  const at = await readLastBackup(dataPlace(context));
  if (at === undefined) return [];
  // With a database server, the finding is only information, because the server may have its own backups, which Runyard does not see.
  const level = context.settings.RUNYARD_DATABASE_URL === undefined ? 'note' : 'fact';
  const fix = 'make one each night: bin/runyard backup FOLDER (docs/backup.md)';
  if (at === null) return [{ name: 'backup', level, detail: 'none was made with bin/runyard backup', fix }];
  const detail = `the last one was made ${formatAgo(at, now.getTime())}`;
  const isOld = now.getTime() - Date.parse(at) > oldBackupMs;
  return [isOld ? { name: 'backup', level, detail, fix } : { name: 'backup', level: 'good', detail }];
}
