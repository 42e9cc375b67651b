import { existsSync } from 'node:fs';
import path from 'node:path';
import { inspectDatabase } from '@runyard/service/inspect-database';
import { type Context, dataPlace } from '../context/context.ts';
import { formatCount } from '../terminal/amounts.ts';
import { formatAgo } from '../terminal/times.ts';
import type { Finding } from './finding.ts';

const name = 'database';

/** Longest difference between two clocks that causes no trouble. */
const mostSkewMs = 5_000;

/**
 * Checks that the embedded PostgreSQL is installed or, if RUNYARD_DATABASE_URL is set, that this server answers, is new enough and has the
 * time of this machine. Checks nothing if the machine has no database: it uses the service of RUNYARD_BASE_URL, or a service runs here with
 * settings that this command does not know (`foreign` is its origin).
 */
export async function checkDatabase(context: Context, foreign: string | null): Promise<Finding[]> {
  const { RUNYARD_BASE_URL: service, RUNYARD_DATABASE_URL: server } = context.settings;
  if (server === undefined && !existsSync(path.join(context.folder.path, 'postgres'))) {
    if (service !== undefined)
      return [{ name, level: 'fact', detail: `no database on this machine, which uses the service at ${service}` }];
    if (foreign !== null)
      return [{ name, level: 'fact', detail: `not checked: the settings of the service at ${foreign} are not known` }];
  }
  const found = await inspectDatabase(context.settings.RUNYARD_DATABASE_URL);
  switch (found.kind) {
    case 'embedded':
      return [{ name, level: 'good', detail: `embedded PostgreSQL ${found.version} in the data folder` }];
    case 'embedded_missing':
      return [{ name, level: 'bad', detail: found.reason }];
    case 'server':
      return [
        { name, level: 'good', detail: `PostgreSQL ${found.version} at ${found.address}` },
        checkClock('the database server', found.aheadMs),
      ];
    case 'server_unusable':
      return [
        {
          name,
          level: 'bad',
          detail: `the server of RUNYARD_DATABASE_URL cannot be used: ${found.reason}`,
          ...(found.fix === undefined ? {} : { fix: found.fix }),
        },
      ];
  }
}

/** Reports whether the clock of another machine shows the time of this machine. */
export function checkClock(machine: string, aheadMs: number): Finding {
  const name = 'clock';
  if (Math.abs(aheadMs) <= mostSkewMs) return { name, level: 'good', detail: `like the clock of ${machine}` };
  const seconds = Math.round(Math.abs(aheadMs) / 1000);
  return {
    name,
    level: 'note',
    detail: `the clock of ${machine} is ${formatCount(seconds)} s ${aheadMs > 0 ? 'ahead of' : 'behind'} the clock of this machine: schedules, tokens and signed addresses end too early or too late`,
    fix: 'set both clocks by the network (Debian: apt-get install systemd-timesyncd)',
  };
}

/**
 * Checks the buckets of RUNYARD_BLOBS and RUNYARD_BLOBS_FROM with the requests of the service, which write, read and delete a small
 * object. Checks nothing if there is no bucket.
 */
export async function checkBlobs(context: Context): Promise<Finding[]> {
  const { RUNYARD_BLOBS: present, RUNYARD_BLOBS_FROM: from } = context.settings;
  const buckets = [present, from].flatMap((place) => (place?.kind === 's3' ? [place.bucket] : []));
  if (buckets.length === 0) return [];
  const { findBlobsProblem } = await import('@runyard/service/transfer');
  const problem = await findBlobsProblem(dataPlace(context));
  if (problem === null)
    return [
      {
        name: 'blobs',
        level: 'good',
        detail: `in the bucket ${buckets.join(' and ')}; an object was written, read and deleted`,
      },
    ];
  const fix =
    'check RUNYARD_BLOBS, and the variables and files of the AWS SDK (AWS_ENDPOINT_URL_S3, AWS_REGION, AWS_ACCESS_KEY_ID, AWS_PROFILE, AWS_CONFIG_FILE, …)';
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
