/** Every setting of every program: one table, from which parsing, `docs/settings.md` and error messages come. */
import { z } from 'zod';

interface Setting<T> {
  readonly schema: z.ZodType<T, string>;
  /** As a user would write it; absent: no default. */
  readonly default?: string;
  readonly description: string;
  readonly usedBy: readonly ('service' | 'worker' | 'cli')[];
  /** True: never printed. */
  readonly secret?: true;
}

/** A URL without its trailing slash. */
const httpUrl = z
  .string()
  .refine((text) => /^https?:$/.test(URL.parse(text)?.protocol ?? ''), { error: 'must be an http:// or https:// URL' })
  .transform((text) => text.replace(/\/+$/, ''));

const whole = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d+$/, { error: 'must be a whole number' })
    .transform(Number)
    .refine((value) => value >= min && value <= max, { error: `must be between ${min} and ${max}` });

const port = whole(0, 65535);
const secret = z.string().min(1, { error: 'must not be empty' });

export const settingsTable = {
  RUNYARD_HOST: {
    schema: z.string().min(1),
    default: '127.0.0.1',
    description: 'Address the service listens on.',
    usedBy: ['service', 'cli'],
  },
  RUNYARD_PORT: {
    schema: port,
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
  RUNYARD_SANDBOX: {
    schema: z.enum(['auto', 'bubblewrap', 'docker', 'none']),
    default: 'auto',
    description:
      'Sandbox backend. `auto` takes bubblewrap and refuses to run without it; `none` runs agents unprotected and says so on every run.',
    usedBy: ['worker', 'cli'],
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
    schema: z
      .string()
      .transform((text) =>
        text
          .split(',')
          .map((network) => network.trim())
          .filter(Boolean),
      )
      .pipe(z.array(z.union([z.cidrv4(), z.cidrv6()], { error: 'must be networks like 10.0.0.0/8 or fd00::/8' }))),
    default: '',
    description:
      'Networks, comma-separated, that event deliveries may reach although they are not public (`10.20.0.0/16`), also by http.',
    usedBy: ['service'],
  },
  RUNYARD_SECRETS_KEY: {
    schema: z.string().refine((text) => /^[A-Za-z0-9+/]{43}=$/.test(text), { error: 'must be 32 bytes as base64' }),
    description:
      'Key that encrypts stored secrets, 32 bytes as base64. Absent: generated once and kept in `{data dir}/secrets-key` (mode 0600). All service processes need the same.',
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
  RUNYARD_LOG: {
    schema: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']),
    default: 'info',
    description: 'Log level; JSON lines on standard error.',
    usedBy: ['service', 'worker'],
  },
  RUNYARD_ANTHROPIC_API_KEY: {
    schema: secret,
    description: 'Key for Anthropic models. Stays in the service.',
    usedBy: ['service'],
    secret: true,
  },
  RUNYARD_OPENAI_API_KEY: {
    schema: secret,
    description: 'Key for OpenAI models. Stays in the service.',
    usedBy: ['service'],
    secret: true,
  },
  RUNYARD_GOOGLE_API_KEY: {
    schema: secret,
    description: 'Key for Google models. Stays in the service.',
    usedBy: ['service'],
    secret: true,
  },
  RUNYARD_ANTHROPIC_BASE_URL: {
    schema: httpUrl,
    default: 'https://api.anthropic.com',
    description: 'Where the gateway finds Anthropic models.',
    usedBy: ['service'],
  },
  RUNYARD_OPENAI_BASE_URL: {
    schema: httpUrl,
    default: 'https://api.openai.com',
    description: 'Where the gateway finds OpenAI models.',
    usedBy: ['service'],
  },
  RUNYARD_GOOGLE_BASE_URL: {
    schema: httpUrl,
    default: 'https://generativelanguage.googleapis.com',
    description: 'Where the gateway finds Google models.',
    usedBy: ['service'],
  },
  RUNYARD_MODEL_BASE_URL: {
    schema: httpUrl,
    description: 'OpenAI-compatible endpoint, with its `/v1`: Ollama, vLLM, llama.cpp, …',
    usedBy: ['service'],
  },
  RUNYARD_MODEL_KEY: {
    schema: secret,
    description: 'Key for RUNYARD_MODEL_BASE_URL, where it wants one.',
    usedBy: ['service'],
    secret: true,
  },
  RUNYARD_MODELS: {
    schema: z.string().transform((text) =>
      text
        .split(',')
        .map((id) => id.trim())
        .filter(Boolean),
    ),
    default: '',
    description: 'More model ids to offer, comma-separated, each `anthropic/…`, `openai/…`, `google/…` or `local/…`.',
    usedBy: ['service'],
  },
  RUNYARD_DEFAULT_MODEL: {
    schema: z.string().min(1),
    description: 'Model of runs that name none. Default: the first configured one, else `runbook`.',
    usedBy: ['service'],
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
  RUNYARD_API_KEY: {
    schema: secret,
    description: 'Key the CLI and the worker authenticate with. Default: the bootstrap key.',
    usedBy: ['worker', 'cli'],
    secret: true,
  },
  RUNYARD_WORKER_NAME: {
    schema: z
      .string()
      .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/, { error: 'must be 1 to 63 characters of [A-Za-z0-9._-]' }),
    description:
      'Name of the worker. Names that start with `runyard` serve all runs, others only runs that name them. Default: `runyard-{hostname}`.',
    usedBy: ['worker'],
  },
  RUNYARD_WORKER_SLOTS: {
    schema: whole(1, 1000),
    description: 'Executions at once on this worker. Default: twice the number of cores.',
    usedBy: ['worker'],
  },
  RUNYARD_SANDBOX_MEMORY_MB: {
    schema: whole(128, 1048576),
    default: '2048',
    description: 'Memory of one sandbox (cgroup where writable, else address space of each process).',
    usedBy: ['worker'],
  },
  RUNYARD_SANDBOX_PROCESSES: {
    schema: whole(16, 100000),
    default: '512',
    description: 'Processes and threads of one sandbox.',
    usedBy: ['worker'],
  },
  RUNYARD_SANDBOX_TMP_MB: {
    schema: whole(1, 1048576),
    default: '512',
    description: 'Size of /tmp of one sandbox, in memory.',
    usedBy: ['worker'],
  },
  RUNYARD_SANDBOX_DISK_MB: {
    schema: whole(16, 10485760),
    default: '4096',
    description: 'Size that workspace and home of one sandbox may reach before it is ended.',
    usedBy: ['worker'],
  },
} as const satisfies Record<string, Setting<unknown>>;

export type SettingName = keyof typeof settingsTable;

type Value<N extends SettingName> = z.output<(typeof settingsTable)[N]['schema']>;

/** Parsed settings: those with a default are always there. */
export type Settings = {
  readonly [N in SettingName as (typeof settingsTable)[N] extends { default: string } ? N : never]: Value<N>;
} & {
  readonly [N in SettingName as (typeof settingsTable)[N] extends { default: string } ? never : N]?: Value<N>;
};

/** What is wrong with the environment: one line per setting, with its name and the reason, never with a secret's value. */
export type SettingsResult = { ok: true; settings: Settings } | { ok: false; problems: string[] };

/** Reads all settings from `env`. An empty value counts as absent; an unknown `RUNYARD_…` name is a problem, because it is a typing error. */
export function parseSettings(env: Readonly<Record<string, string | undefined>>): SettingsResult {
  const problems: string[] = [];
  const settings: Record<string, unknown> = {};
  for (const name of Object.keys(env)) {
    if (name.startsWith('RUNYARD_') && !(name in settingsTable)) {
      problems.push(`${name}: is not a setting of Runyard; see docs/settings.md`);
    }
  }
  for (const [name, setting] of Object.entries(settingsTable) as [SettingName, Setting<unknown>][]) {
    const text = env[name] || setting.default;
    if (text === undefined) continue;
    const parsed = setting.schema.safeParse(text);
    if (parsed.success) settings[name] = parsed.data;
    else {
      const shown = setting.secret ? '' : ` (it is ${JSON.stringify(text)})`;
      problems.push(`${name}: ${parsed.error.issues.map((issue) => issue.message).join('; ')}${shown}`);
    }
  }
  return problems.length > 0 ? { ok: false, problems } : { ok: true, settings: settings as Settings };
}
