import { z } from 'zod';
import { httpUrl, list, type Setting, whole } from './setting.ts';

/** Settings of the service, and those that all programs share. */
export const serviceSettings = {
  RUNYARD_HOST: {
    schema: z.string().min(1),
    default: '127.0.0.1',
    description: 'Address the service listens on.',
    usedBy: ['service', 'cli'],
  },
  RUNYARD_PORT: {
    schema: whole(0, 65535),
    default: '4180',
    description: 'Port the service listens on; 0 takes a free one.',
    usedBy: ['service', 'cli'],
  },
  RUNYARD_BASE_URL: {
    schema: httpUrl,
    description: 'URL under which clients reach the service, without `/api/v1`. Default: `http://{host}:{port}`.',
    usedBy: ['service', 'worker', 'cli'],
  },
  RUNYARD_WEBHOOK_BASE_URL: {
    schema: httpUrl,
    description: 'URL under which senders of webhooks reach it. Default: the base URL.',
    usedBy: ['service'],
  },
  RUNYARD_DATA_DIR: {
    schema: z.string().min(1),
    default: '.runyard',
    description: 'Folder of the embedded database, blobs, workspaces and generated keys.',
    usedBy: ['service', 'worker', 'cli'],
  },
  RUNYARD_DATABASE_URL: {
    schema: z.string().regex(/^postgres(ql)?:\/\//, { error: 'must be a postgres:// URL' }),
    description: 'PostgreSQL server (14 or newer) to use. Absent: the embedded PostgreSQL in the data folder.',
    usedBy: ['service', 'cli'],
    secret: true,
  },
  RUNYARD_BOOTSTRAP_KEY: {
    schema: z
      .string()
      .regex(/^[\x21-\x7e]{20,200}$/, { error: 'must be 20 to 200 printable characters without spaces' }),
    description:
      'First personal key, of an administrator of the first team. Absent: generated once and kept in `{data dir}/bootstrap-key` (mode 0600).',
    usedBy: ['service', 'cli'],
    secret: true,
  },
  RUNYARD_CODE_HOST_URL: {
    schema: z
      .string()
      .refine((text) => /^https?:\/\//.test(text) && text.includes('{owner}') && text.includes('{repo}'), {
        error: 'must be an http(s) URL with {owner} and {repo} in it',
      }),
    default: 'https://github.com/{owner}/{repo}.git',
    description: 'Template of the clone URL of a repository.',
    usedBy: ['service'],
  },
  RUNYARD_ALLOW_PRIVATE_NETWORKS: {
    schema: list.pipe(
      z.array(z.union([z.cidrv4(), z.cidrv6()], { error: 'must be networks like 10.0.0.0/8 or fd00::/8' })),
    ),
    default: '',
    description:
      'Networks, comma-separated, that event deliveries may reach although they are not public (`10.20.0.0/16`), also by http.',
    usedBy: ['service'],
  },
  RUNYARD_SECRETS_KEY: {
    schema: z.string().refine((text) => /^[A-Za-z0-9+/]{43}=(?:,[A-Za-z0-9+/]{43}=)*$/.test(text), {
      error: 'must be 32 bytes as base64, or several such keys with commas between them',
    }),
    description:
      'Key that encrypts stored secrets, 32 bytes as base64. Earlier keys may follow after a comma: what they sealed is opened, and sealed again with the first. Absent: generated once and kept in `{data dir}/secrets-key` (mode 0600). All service processes need the same.',
    usedBy: ['service'],
    secret: true,
  },
  RUNYARD_RETENTION_RUN_DAYS: {
    schema: whole(0, 36500),
    default: '400',
    description:
      'Runs that ended so many days ago are deleted with all that is theirs, once a night; 0 keeps them for ever.',
    usedBy: ['service'],
  },
  RUNYARD_RETENTION_DETAIL_DAYS: {
    schema: whole(0, 36500),
    default: '90',
    description:
      'Conversation and transcript of runs that ended so many days ago are deleted, once a night; 0 keeps them as long as the run. Timeline, artifacts and costs stay with the run.',
    usedBy: ['service'],
  },
  RUNYARD_WORKSPACE_MB: {
    schema: whole(0, 1048576),
    default: '512',
    description:
      'Compressed size up to which the workspace of a run is kept, so that a continuation in a new sandbox finds it again; 0 keeps none.',
    usedBy: ['service'],
  },
  RUNYARD_RUN_EVENTS_MB: {
    schema: whole(1, 1048576),
    default: '256',
    description:
      'Conversation that a run may store in total. At the limit the run goes on, and further text and output are dropped and counted.',
    usedBy: ['service'],
  },
  RUNYARD_RUN_TRANSCRIPT_MB: {
    schema: whole(1, 1048576),
    default: '1024',
    description: 'Raw transcript that a run may store in total. At the limit further lines are dropped and counted.',
    usedBy: ['service'],
  },
  RUNYARD_RUN_ARTIFACTS_MB: {
    schema: whole(1, 1048576),
    default: '2048',
    description: 'Files and screenshots that a run may have as artifacts, in total. Further ones are refused.',
    usedBy: ['service'],
  },
  RUNYARD_LOG: {
    schema: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']),
    default: 'info',
    description: 'Log level; JSON lines on standard error.',
    usedBy: ['service', 'worker'],
  },
  RUNYARD_LEASE_SECONDS: {
    schema: whole(2, 3600),
    default: '90',
    description: 'An execution whose worker and agent are both silent for so long is lost.',
    usedBy: ['service'],
  },
  RUNYARD_RECONNECT_GRACE_SECONDS: {
    schema: whole(1, 3600),
    default: '30',
    description: 'What is left of the lease when the connection of a worker drops.',
    usedBy: ['service'],
  },
  RUNYARD_CLAIM_TIMEOUT_SECONDS: {
    schema: whole(1, 600),
    default: '30',
    description: 'Time a worker has to claim an assignment before another one gets it.',
    usedBy: ['service'],
  },
  RUNYARD_DATABASE_CONNECTIONS: {
    schema: whole(2, 200),
    default: '16',
    description: 'Connections of one service process to the database.',
    usedBy: ['service'],
  },
} as const satisfies Record<string, Setting<unknown>>;
