import {
  absolutePath,
  httpUrl,
  listenHost,
  matching,
  networks,
  oneOf,
  postgresUrl,
  privateNetworks,
  type ReadText,
  type Setting,
  text,
  whole,
} from './setting.ts';

/** A URL with placeholders for the owner and the name of a repository. */
const cloneUrl: ReadText<string> = (text) =>
  /^https?:\/\/[^\s#]+$/.test(text) && URL.canParse(text) && text.includes('{owner}') && text.includes('{repo}')
    ? { value: text }
    : { problem: 'must be an http(s) URL with {owner} and {repo} in it' };

/** Settings of the service, and settings that all programs share. */
export const serviceSettings = {
  RUNYARD_HOST: {
    read: listenHost,
    default: '127.0.0.1',
    description: 'Address on which the service listens.',
    usedBy: ['service', 'cli'],
  },
  RUNYARD_PORT: {
    read: whole(0, 65535),
    default: '4180',
    description: 'Port on which the service listens; 0: a free port.',
    usedBy: ['service', 'cli'],
  },
  RUNYARD_BASE_URL: {
    read: httpUrl,
    description: 'URL at which clients reach the service, without `/api/v1`. Default: `http://{host}:{port}`.',
    usedBy: ['service', 'worker', 'cli'],
  },
  RUNYARD_TRUSTED_PROXIES: {
    read: networks,
    default: '',
    description:
      'Addresses of the proxies in front of the service, comma-separated (`127.0.0.1,10.0.0.0/24`). `X-Forwarded-For`, `X-Forwarded-Proto` and `X-Forwarded-Host` are read only from these proxies (docs/proxy.md).',
    usedBy: ['service'],
  },
  RUNYARD_FILES_URL: {
    read: httpUrl,
    description:
      'URL from which browsers get files of runs, with another host name than RUNYARD_BASE_URL. At this URL, the service answers only signed downloads, so a page can show HTML and SVG files in a sandboxed frame. A proxy in front must pass the header Host. Absent: files come from RUNYARD_BASE_URL, and HTML and SVG are downloads only.',
    usedBy: ['service'],
  },
  RUNYARD_CA_FILE: {
    read: absolutePath,
    description:
      "File with certificates (PEM) of authorities that service, worker, agent and commands trust in addition to Node's own list: for a proxy or provider with a certificate that your company has signed (docs/tls-inspection.md).",
    usedBy: ['service', 'worker', 'cli'],
  },
  RUNYARD_TEAM: {
    read: matching(/^[A-Za-z0-9]{22}$/, 'must be the UID of a team: 22 characters of [A-Za-z0-9]'),
    description: 'Team that commands act in, by its UID. Default: the team that the key was made in.',
    usedBy: ['cli'],
  },
  RUNYARD_WEBHOOK_BASE_URL: {
    read: httpUrl,
    description:
      'URL at which senders of webhooks reach the service. Default: the base URL, or the address of RUNYARD_WEBHOOK_PORT.',
    usedBy: ['service'],
  },
  RUNYARD_WEBHOOK_HOST: {
    read: listenHost,
    description:
      'Address on which the service listens for deliveries to webhooks, with RUNYARD_WEBHOOK_PORT. Default: RUNYARD_HOST.',
    usedBy: ['service'],
  },
  RUNYARD_WEBHOOK_PORT: {
    read: whole(0, 65535),
    description:
      'A separate port for deliveries to webhooks, so that senders need access only to this port; the port of the API then accepts no deliveries. Absent: they arrive on RUNYARD_PORT.',
    usedBy: ['service'],
  },
  RUNYARD_WEBHOOK_PAYLOADS_MB: {
    read: whole(16, 1048576),
    default: '1024',
    description:
      'Payloads that one webhook may store. Above this size the oldest payloads are deleted, but never the payloads of the latest 50 deliveries.',
    usedBy: ['service'],
  },
  RUNYARD_DATA_DIR: {
    read: text,
    default: '.runyard',
    description: 'Folder of the embedded database, blobs, workspaces and generated keys.',
    usedBy: ['service', 'worker', 'cli'],
  },
  RUNYARD_DATABASE_URL: {
    read: postgresUrl,
    description:
      'PostgreSQL server (14 or newer) to use: the server itself, or a pooler that keeps sessions. `sslmode` and `sslrootcert` in the URL mean what they mean for psql. Absent: the embedded PostgreSQL in the data folder.',
    usedBy: ['service', 'cli'],
    secret: true,
  },
  RUNYARD_BOOTSTRAP_KEY: {
    read: matching(/^[\x21-\x7e]{20,200}$/, 'must be 20 to 200 printable characters without spaces'),
    description:
      "First personal key, of an administrator of the first team. Absent: the first service of a database generates it, once, and keeps it in `{data dir}/bootstrap-key` (mode 0600). If it is set, it replaces the operator's key at each start.",
    usedBy: ['service', 'cli'],
    secret: true,
  },
  RUNYARD_WORKER_KEY: {
    read: matching(/^[\x21-\x7e]{20,200}$/, 'must be 20 to 200 printable characters without spaces'),
    description:
      'Key with which workers of the hosted pool connect; it gives no other access. At each start, the service replaces the previous key of this setting. Absent: such keys come from `runyard keys create --kind worker`.',
    usedBy: ['service'],
    secret: true,
  },
  RUNYARD_CODE_HOST_URL: {
    read: cloneUrl,
    default: 'https://github.com/{owner}/{repo}.git',
    description: 'Template of the clone URL of a repository.',
    usedBy: ['service'],
  },
  RUNYARD_CODE_HOST_API_URL: {
    read: httpUrl,
    description:
      'API of the code host; the service uses it to open pull requests and to request tokens of GitHub Apps. A URL that ends with `/api/v4` is used as GitLab, every other URL as GitHub. Absent: `https://api.github.com` for github.com, `/api/v4` of gitlab.com and of hosts whose name begins with `gitlab.`, `/api/v3` of other hosts.',
    usedBy: ['service'],
  },
  RUNYARD_ALLOW_PRIVATE_NETWORKS: {
    read: privateNetworks,
    default: '',
    description:
      'Private networks, comma-separated (`10.20.0.0/16`), to which the service may send event deliveries, also over http.',
    usedBy: ['service'],
  },
  RUNYARD_EGRESS_RANGES: {
    read: networks,
    default: '',
    description:
      'Addresses from which the workers of the installation reach the internet, comma-separated (`192.0.2.0/24,198.51.100.7`). `GET /networking/egress-ranges` shows them to teams, for firewalls of other systems.',
    usedBy: ['service'],
  },
  RUNYARD_SECRETS_KEY: {
    read: matching(
      /^[A-Za-z0-9+/]{43}=(?:,[A-Za-z0-9+/]{43}=)*$/,
      'must be 32 bytes as base64, or several such keys with commas between them',
    ),
    description:
      'Key that encrypts stored secrets, 32 bytes as base64. Earlier keys may follow after a comma: their values are decrypted, and encrypted again with the first key. Absent: generated once and kept in `{data dir}/secrets-key` (mode 0600). All service processes need the same value.',
    usedBy: ['service'],
    secret: true,
  },
  RUNYARD_RETENTION_RUN_DAYS: {
    read: whole(0, 36500),
    default: '400',
    description: 'Days after its end until a run is deleted, with all its data. 0: never.',
    usedBy: ['service'],
  },
  RUNYARD_RETENTION_DETAIL_DAYS: {
    read: whole(0, 36500),
    default: '90',
    description:
      'Days after the end of a run after which its conversation and transcript are deleted. 0: they are kept as long as the run. Timeline, artifacts and costs stay with the run.',
    usedBy: ['service'],
  },
  RUNYARD_RETENTION_AUDIT_DAYS: {
    read: whole(0, 36500),
    default: '400',
    description:
      'Entries of the audit log that are older than this number of days are deleted, once a night; 0 keeps them forever.',
    usedBy: ['service'],
  },
  RUNYARD_WORKSPACE_MB: {
    read: whole(0, 1048576),
    default: '512',
    description: 'Largest compressed workspace that is kept for the next sandbox of the run. 0: none is kept.',
    usedBy: ['service'],
  },
  RUNYARD_KEY_REQUESTS_PER_MINUTE: {
    read: whole(0, 100_000_000),
    default: '300000',
    description:
      'Requests of one API key in a minute, for each service process; 0: no limit. Above it, 429 with `Retry-After`.',
    usedBy: ['service'],
  },
  RUNYARD_TEAM_REQUESTS_PER_MINUTE: {
    read: whole(0, 100_000_000),
    default: '600000',
    description:
      'Requests of all API keys of a team in a minute, for each service process; 0: no limit. Above it, 429 with `Retry-After`.',
    usedBy: ['service'],
  },
  RUNYARD_RUN_EVENTS_MB: {
    read: whole(1, 1048576),
    default: '256',
    description:
      'Conversation that a run may store in total. At the limit, the run continues; further text and output are dropped and counted.',
    usedBy: ['service'],
  },
  RUNYARD_RUN_TRANSCRIPT_MB: {
    read: whole(1, 1048576),
    default: '1024',
    description: 'Raw transcript that a run may store in total. At the limit further lines are dropped and counted.',
    usedBy: ['service'],
  },
  RUNYARD_ARTIFACT_MB: {
    // A bucket takes an object in 10,000 parts of 8 MB.
    read: whole(1, 81_920),
    default: '100',
    description:
      'Maximum size of one file or screenshot that a run has as an artifact. Larger files are refused. For files of gigabytes, also raise `RUNYARD_RUN_ARTIFACTS_MB` and `RUNYARD_SANDBOX_DISK_MB`.',
    usedBy: ['service'],
  },
  RUNYARD_RUN_ARTIFACTS_MB: {
    read: whole(1, 1048576),
    default: '2048',
    description: 'Files and screenshots that a run may have as artifacts, in total. Further files are refused.',
    usedBy: ['service'],
  },
  RUNYARD_TEAM_STORAGE_MB: {
    read: whole(1, 1_073_741_824),
    default: '102400',
    description:
      'Bytes that a team may store: requests of runs with their attachments, follow-ups, conversations and transcripts, artifacts, saved workspaces and memories, handoffs, changed files. Above it, further files are refused, and the conversations of its runs are cut with a notice. Choose it so that the data of all teams fits on the disk.',
    usedBy: ['service'],
  },
  RUNYARD_LOG: {
    read: oneOf('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'),
    default: 'info',
    description:
      'Log level; JSON lines on standard error. The service can also send them to a collector (docs/metrics.md).',
    usedBy: ['service', 'worker'],
  },
  RUNYARD_CHECKPOINT_SECONDS: {
    read: whole(0, 86400),
    default: '300',
    description:
      'Time between two checkpoints of workspace and home in the middle of a turn, of runs with `on_worker_loss: resume`. A large workspace has fewer checkpoints, so that packing takes at most a tenth of the time. 0: a lost turn resumes from its beginning.',
    usedBy: ['service'],
  },
  RUNYARD_LEASE_SECONDS: {
    read: whole(2, 3600),
    default: '90',
    description: 'Time after which an execution counts as lost if neither its worker nor its agent sends anything.',
    usedBy: ['service'],
  },
  RUNYARD_RECONNECT_GRACE_SECONDS: {
    read: whole(1, 3600),
    default: '30',
    description: 'Rest of the lease after the connection of a worker drops.',
    usedBy: ['service'],
  },
  RUNYARD_CLAIM_TIMEOUT_SECONDS: {
    read: whole(1, 600),
    default: '30',
    description: 'Time that a worker has to claim an assignment, before another worker gets it.',
    usedBy: ['service'],
  },
  RUNYARD_DATABASE_CONNECTIONS: {
    read: whole(2, 200),
    default: '16',
    description: 'Connections of one service process to the database.',
    usedBy: ['service'],
  },
  RUNYARD_EVENT_STREAMS: {
    read: whole(4, 1_000_000),
    default: '10000',
    description:
      'Maximum number of event streams in one service process, and never more than half of the files that it can open (`ulimit -n`). A team gets at most a half of them, a key a quarter; further streams get 429.',
    usedBy: ['service'],
  },
} as const satisfies Record<string, Setting<unknown>>;
