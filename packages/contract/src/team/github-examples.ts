/** Examples of the operations on GitHub Apps. */
import { type Example, exampleIds, exampleTimes } from '../wire/example.ts';

const installation = {
  uid: exampleIds.INSTALLATION_UID,
  installation_id: '4711',
  account: { id: 9919, login: 'acme', type: 'Organization' },
  factory_uid: exampleIds.FACTORY_UID,
  webhook_uid: exampleIds.WEBHOOK_UID,
  is_suspended: false,
  created_at: exampleTimes.created,
};
const app = {
  uid: exampleIds.APP_UID,
  host: 'github.com',
  app_id: '123456',
  handle: '@acme-runyard',
  credential_id: exampleIds.CREDENTIAL_ID,
  install_url: 'https://github.com/apps/acme-runyard/installations/new',
  webhook_url: `https://runyard.example.com/webhooks/github/${exampleIds.APP_UID}`,
  installations: [installation],
  linked_account: { id: 583231, login: 'octocat' },
  created_at: exampleTimes.created,
};
const back = { code: 'a1b2c3d4e5', state: 'c2VhbGVk' };

export const githubExamples = {
  listGithubApps: { answer: { apps: [app] } },
  createGithubApp: {
    body: {
      credential_id: exampleIds.CREDENTIAL_ID,
      client_id: 'Iv23liAbCdEf',
      client_secret: 'example-client-secret',
      webhook_secret: 'example-webhook-secret',
    },
    answer: app,
  },
  planGithubApp: {
    body: { name: 'acme-runyard', organization: 'acme', is_public: false },
    answer: {
      url: 'https://github.com/organizations/acme/settings/apps/new?state=c2VhbGVk',
      manifest: '{"name":"acme-runyard"}',
      permissions: [{ name: 'issues', access: 'write', reason: 'to answer in issues' }],
      has_public_address: true,
    },
  },
  convertGithubApp: { body: back, answer: app },
  deleteGithubApp: { answer: { success: true } },
  authorizeGithub: {
    body: { purpose: 'claim', installation_id: '4711', factory_uid: exampleIds.FACTORY_UID },
    answer: { url: 'https://github.com/login/oauth/authorize?client_id=Iv23liAbCdEf&state=c2VhbGVk' },
  },
  finishGithubAuthorization: {
    body: back,
    answer: { purpose: 'claim', account: { id: 583231, login: 'octocat' }, installation },
  },
  unlinkGithub: { answer: { success: true } },
  releaseGithubInstallation: { answer: { success: true } },
} as const satisfies Record<string, Example>;
