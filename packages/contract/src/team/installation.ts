import { z } from 'zod';
import { Timestamp } from '../wire/primitives.ts';
import { ConnectedWorker } from '../workers/workers.ts';

const DiskSpace = z
  .object({
    free_bytes: z.int().describe('Free bytes'),
    total_bytes: z.int().describe('Size of the file system'),
  })
  .meta({ id: 'DiskSpace', description: 'A file system' });

/** The report that a service process stores about itself. */
export const ServiceReport = z.object({
  host: z.string().describe('Name of its machine'),
  version: z.string().describe('Its version'),
  problem: z.string().optional().describe('The parts of it that do not work; absent: all of it works'),
  disk: DiskSpace.optional().describe('File system of its data folder; absent: it cannot be read'),
});
export type ServiceReport = z.infer<typeof ServiceReport>;

const InstalledService = ServiceReport.partial()
  .extend({
    is_alive: z.boolean().describe('False: it has given no sign of life for 20 seconds, and did not say that it ends'),
    started_at: Timestamp.describe('When it started, RFC 3339 in UTC'),
    last_seen_at: Timestamp.describe('When it last gave a sign of life, RFC 3339 in UTC'),
  })
  .meta({
    id: 'InstalledService',
    description: 'A service process. It is listed until an hour after its last sign of life',
  });

const GoneReason = z.enum(['stopped', 'lost']).meta({
  id: 'GoneReason',
  description: '`stopped`: the worker had said that it ends. `lost`: it had not',
});

const GoneWorker = z
  .object({
    worker_host: z.string().describe('Name of the worker'),
    gone_at: Timestamp.describe('When its last connection ended, RFC 3339 in UTC'),
    reason: GoneReason,
    version: z.string().optional().describe('Its version; absent: it did not report it'),
  })
  .meta({ id: 'GoneWorker', description: 'A worker of the service that is not connected any more' });

const InstallationDatabase = z
  .object({
    version: z.string().describe('Version of PostgreSQL'),
    size_bytes: z.int().describe('Size of the database'),
    migration: z.string().describe('Name of the newest migration of its tables'),
  })
  .meta({ id: 'InstallationDatabase', description: 'The database of the installation' });

export const Installation = z
  .object({
    version: z.string().describe('Version of the service that answers'),
    services: z.array(InstalledService).describe('Service processes, the oldest first'),
    workers: z.array(ConnectedWorker).describe('Connected workers of the service, by name'),
    gone_workers: z
      .array(GoneWorker)
      .describe('Workers of the service that were connected in the last 7 days, newest first, at most 100'),
    database: InstallationDatabase.describe('Its database'),
    blobs: z.string().describe('Where its blobs are: a folder or a bucket'),
    last_backup_at: Timestamp.optional().describe(
      'When the last backup by `runyard backup` was made; absent: there was none',
    ),
    paused_since: Timestamp.optional().describe(
      'Since when a restored installation waits for `runyard resume`; absent: it is not paused',
    ),
  })
  .meta({ id: 'Installation', description: 'The programs of an installation, and how they are' });
export type Installation = z.infer<typeof Installation>;
