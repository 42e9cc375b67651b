/** Examples of the operations on artifacts, environments, keys, models and workers. */
import { type Example, exampleCreator, exampleIds, exampleScope, exampleTimes, signed } from '../wire/example.ts';

const { ARTIFACT_UID: artifactUid, ENVIRONMENT_UID: environmentUid, KEY_UID: keyUid } = exampleIds;
const { created, ended } = exampleTimes;

const deleted: Example = { answer: { success: true } };
const signedUrl = 'http://127.0.0.1:4180/api/v1/blobs/artifact/…?expires=…&signature=…';

const environmentConfig = {
  name: 'Hello',
  description: 'Says hello before each run',
  setup_commands: ['echo hello'],
};
const environment = {
  uid: environmentUid,
  config: environmentConfig,
  last_updated: created,
  setup_failed: false,
  scope: exampleScope,
  creator: exampleCreator,
  last_editor: exampleCreator,
};

const key = {
  uid: keyUid,
  name: 'Deploy script',
  kind: 'personal',
  prefix: 'ry_k3Fz',
  last_four: 'x8Qw',
  created_at: created,
  expires_at: '2026-11-24T12:00:00.000Z',
};

const secret = { name: exampleIds.NAME, scope: 'personal', created_at: created, updated_at: created };

const guestInvitation = {
  id: exampleIds.GUEST_INVITATION_ID,
  email: 'ada@example.com',
  created_at: created,
  expires_at: '2026-11-24T12:00:00.000Z',
};
const workerPool = {
  name: exampleIds.POOL_NAME,
  owner: exampleCreator,
  connectors: [
    {
      principal: { type: 'service_account', uid: exampleIds.PRINCIPAL_UID, display_name: 'Build machines' },
      added_by: exampleCreator,
      added_at: created,
    },
  ],
  created_at: created,
};

export const resourceExamples = {
  listAgents: {
    answer: {
      agents: [
        {
          name: 'review',
          variants: [
            {
              id: 'acme/site:skills/review/SKILL.md',
              description: 'Reviews a change. Use it for every pull request.',
              base_prompt: 'Read the change, then run the tests.',
              source: { owner: 'acme', name: 'site', skill_path: 'skills/review/SKILL.md' },
              environments: [{ uid: environmentUid, name: 'Hello' }],
              last_run_timestamp: created,
            },
          ],
        },
      ],
    },
  },
  getArtifact: {
    answer: {
      artifact_type: 'FILE',
      artifact_uid: artifactUid,
      created_at: ended,
      data: {
        content_type: 'text/plain',
        download_url: signedUrl,
        expires_at: '2026-10-25T12:15:02.000Z',
        sha256: '5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03',
        filename: 'report.txt',
        filepath: 'report.txt',
        size_bytes: 6,
      },
    },
  },
  downloadArtifact: {},
  deleteArtifact: deleted,
  shareArtifact: {
    answer: {
      artifact_uid: artifactUid,
      is_public: true,
      public_url: `http://127.0.0.1:4180/api/v1/agent/artifacts/${artifactUid}/download`,
    },
  },
  unshareArtifact: { answer: { artifact_uid: artifactUid, is_public: false } },
  findRunByExternalReference: {
    query: { url: 'https://example.com/issues/7' },
    answer: { run_id: exampleIds.RUN_ID },
  },
  getArtifactPreview: {
    answer: {
      kind: 'text',
      url: `/api/v1/blobs/preview/${exampleIds.ARTIFACT_UID}?expires=…&signature=…`,
      expires_at: exampleTimes.ended,
      content_type: 'text/plain; charset=utf-8',
      size_bytes: 6,
      shown_bytes: 6,
    },
  },
  getBlob: { query: signed, answer: 'hello\n' },
  listEnvironments: { query: { sort_by: 'name' }, answer: { environments: [environment] } },
  createEnvironment: { body: { config: environmentConfig }, answer: environment },
  getEnvironment: { answer: environment },
  updateEnvironment: {
    body: { config: { ...environmentConfig, setup_commands: ['echo good morning'] } },
    answer: { ...environment, config: { ...environmentConfig, setup_commands: ['echo good morning'] } },
  },
  deleteEnvironment: deleted,
  listEnvironmentGuests: {
    answer: { guests: [{ user: exampleCreator, granted_at: created }], invitations: [guestInvitation] },
  },
  inviteEnvironmentGuest: { body: { email: 'ada@example.com' }, answer: guestInvitation },
  withdrawEnvironmentInvitation: deleted,
  listEnvironmentInvitations: {
    answer: {
      invitations: [
        {
          id: exampleIds.GUEST_INVITATION_ID,
          environment_uid: exampleIds.ENVIRONMENT_UID,
          environment_name: 'Web',
          team_name: 'Payments',
          invited_by: 'Administrator',
          created_at: created,
          expires_at: '2026-11-24T12:00:00.000Z',
        },
      ],
    },
  },
  acceptEnvironmentInvitation: deleted,
  declineEnvironmentInvitation: deleted,
  leaveEnvironment: deleted,
  removeEnvironmentGuest: deleted,
  shareEnvironment: {
    answer: {
      uid: environmentUid,
      is_link_shared: true,
      url: `http://127.0.0.1:4180/api/v1/agent/environments/${environmentUid}`,
    },
  },
  unshareEnvironment: { answer: { uid: environmentUid, is_link_shared: false } },
  listKeys: { answer: { keys: [key] } },
  createKey: {
    body: { name: 'Deploy script', kind: 'personal', expires_in: '30d' },
    answer: { ...key, key: 'ry_k3Fz…x8Qw' },
  },
  deleteKey: deleted,
  listSecrets: { answer: { secrets: [secret] } },
  putSecret: { body: { value: 'kT9…'.padEnd(24, 'x7Qw'), scope: 'personal' }, answer: secret },
  deleteSecret: deleted,
  createSignInCode: { answer: { code: exampleIds.SIGN_IN_CODE, expires_at: '2026-10-25T12:01:00.000Z' } },
  readSignInCode: {
    body: { code: exampleIds.SIGN_IN_CODE },
    answer: { display_name: 'Administrator', team_name: 'Default' },
  },
  createBrowserSession: {
    fromPage: true,
    body: { code: exampleIds.SIGN_IN_CODE },
    answer: {
      uid: exampleIds.KEY_UID,
      expires_at: '2026-10-25T20:00:00.000Z',
      display_name: 'Administrator',
    },
  },
  listSignOnProviders: { answer: { providers: [{ id: 'acme', name: 'Acme' }] } },
  startSignOn: {
    fromPage: true,
    body: { provider: 'acme', next: '/runs' },
    answer: { url: 'https://login.acme.example/authorize?client_id=runyard&response_type=code' },
  },
  endBrowserSessions: { answer: { success: true } },
  getSession: {
    answer: {
      kind: 'session',
      uid: keyUid,
      user: { type: 'user', uid: 'JCtpVn4u5GBkYz0dRWe8aB', display_name: 'Ada' },
      teams: [
        {
          uid: 'pY3uQk8wVn2rT6xZ1aLmCd',
          name: 'Payments',
          role: 'owner',
          is_current: true,
          created_at: '2026-11-02T09:00:00.000Z',
        },
      ],
      csrf_token: 'Wk3q1sYtXb7nC5vM9rL2pD8fG4hJ6aZ0eUiOxQyTcBN',
      expires_at: '2026-11-26T17:00:00.000Z',
      base_url: 'http://127.0.0.1:4180',
      client: { address: '127.0.0.1', scheme: 'http', host: '127.0.0.1:4180' },
      code_host: 'github.com',
    },
  },
  endBrowserSession: deleted,
  listModels: {
    answer: {
      default_model_id: 'runbook',
      models: [{ id: 'runbook', display_name: 'Runbook', provider: 'UNKNOWN', vision_supported: false }],
    },
  },
  getModelSettings: { answer: { fallback_model_ids: [], disabled_model_ids: [] } },
  updateModelSettings: {
    body: { disable: ['openai/gpt-5-nano'] },
    answer: { fallback_model_ids: [], disabled_model_ids: ['openai/gpt-5-nano'], updated_at: ended },
  },
  getInstallation: {
    answer: {
      version: '0.1.0',
      services: [
        {
          host: 'runyard-1',
          version: '0.1.0',
          disk: { free_bytes: 52_613_349_376, total_bytes: 105_226_698_752 },
          is_alive: true,
          started_at: created,
          last_seen_at: ended,
        },
      ],
      workers: [],
      gone_workers: [{ worker_host: 'runyard-worker-1', gone_at: ended, reason: 'lost', version: '0.1.0' }],
      database: { version: '18.4', size_bytes: 52_613_349, migration: '0035_installation' },
      blobs: 's3://runyard/blobs',
      last_backup_at: created,
    },
  },
  listConnectedWorkers: {
    answer: {
      workers: [
        {
          worker_host: 'build-1',
          connection_count: 1,
          connected_at: created,
          last_seen_at: ended,
          connections: [
            {
              backend: 'bubblewrap',
              features: ['user', 'no-network'],
              missing_features: [{ feature: 'cgroup', reason: 'the service manager delegates no control group' }],
              slots: { used: 1, total: 8 },
              version: '0.1.0',
              disk: { free_bytes: 52_613_349_376, total_bytes: 105_226_698_752 },
              draining: false,
              connected_at: created,
              last_seen_at: ended,
            },
          ],
        },
      ],
    },
  },
  listWorkerPools: { answer: { pools: [workerPool] } },
  addWorkerPoolConnector: { answer: workerPool },
  takeOverWorkerPool: { answer: workerPool },
  removeWorkerPoolConnector: { answer: { success: true } },
  deleteWorkerPool: { answer: { success: true } },
  getEgressRanges: { answer: { cidrs: ['192.0.2.0/24', '2001:db8::/32'] } },
  getOpenApi: { answer: { openapi: '3.1.0', info: { title: 'Runyard', version: '1.0.0' }, paths: {} } },
} as const satisfies Record<string, Example>;
