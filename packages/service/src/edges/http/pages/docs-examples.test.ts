/** Tests that each command of the reference works unchanged: a shell runs the command against a service with a real port and database. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { openApiDocument } from '@runyard/contract/openapi/openapi';
import { type RouteName, routes } from '@runyard/contract/routes';
import type { RunMessagePage } from '@runyard/contract/runs/conversation-pages';
import type { Route } from '@runyard/contract/wire/route';
import { expect, test } from 'vitest';
import { startFakeGitHost } from '../../../../../../test/fakes/git-host.ts';
import { makeFakePullRequestApi } from '../../../../../../test/fakes/pull-request-api.ts';
import { closeAtEnd, newFolder } from '../../../../../../test/support/close-at-end.ts';
import { newSignInCode } from '../../../../test/browser-session.ts';
import { runWithFreshCheck, startedFreshCheck } from '../../../../test/fresh-checks.ts';
import { makeOwnThings, type OwnThings } from '../../../../test/own-things.ts';
import { openTestService } from '../../../../test/service.ts';

const run = promisify(execFile);

interface Operation {
  readonly operationId: RouteName;
  readonly 'x-codeSamples': readonly { readonly source: string }[];
}

const commandsOf = (baseUrl: string): Map<RouteName, string> => {
  const { paths } = openApiDocument(baseUrl) as { paths: Record<string, Record<string, Operation>> };
  const operations = Object.values(paths).flatMap((methods) => Object.values(methods));
  return new Map(operations.map((each) => [each.operationId, each['x-codeSamples'][0]?.source ?? '']));
};

/** Shell variables of the commands. */
type Variables = Readonly<Record<string, string>>;

const at = '2026-10-25T12:00:00Z';
const turn = [
  { seq: 1, occurred_at: at, type: 'agent_started', harness: 'oz', model_id: 'runbook' },
  { seq: 2, occurred_at: at, type: 'turn_started', step_id: 's1', prompt: 'a' },
  { seq: 3, occurred_at: at, type: 'transcript', line: '{}' },
];
const reference = {
  artifact_type: 'EXTERNAL_REFERENCE',
  data: { reference_type: 'issue', url: 'https://example.com/issues/7' },
};

/**
 * Creates one thing of each kind, and a run whose first turn is in progress. With `onlyFor`, creates only the things in the path of that
 * route.
 */
async function makeThings(onlyFor?: Route): Promise<OwnThings> {
  const { own } = await makeOwnThings(service, service.key, onlyFor);
  if (own.runToken === '') return own;
  await service.request('POST', '/harness-support/events', { key: own.runToken, body: { events: turn } });
  await service.request('POST', '/harness-support/report-artifact', { key: own.runToken, body: reference });
  return own;
}

async function variablesOf(own: OwnThings): Promise<Variables> {
  const { body } = await service.request<{ session_id: string }>('GET', `/agent/runs/${own.runId}`);
  return {
    RUNYARD_API_KEY: service.key,
    RUN_TOKEN: own.runToken,
    RUN_ID: own.runId,
    CHILD_RUN_ID: own.childRunId,
    EXECUTION_ID: own.executionId,
    CONVERSATION_ID: own.conversationId,
    SESSION_UUID: body.session_id,
    ARTIFACT_UID: own.artifactUid,
    ATTACHMENT_ID: own.attachmentId,
    FOLLOWUP_ID: own.followupId,
    ENVIRONMENT_UID: own.environmentUid,
    KEY_UID: own.keyUid,
    SCHEDULE_ID: own.scheduleId,
    SUBSCRIPTION_ID: own.subscriptionId,
    SERVER_ID: own.serverId,
    DELIVERY_ID: own.deliveryId,
    CREDENTIAL_ID: own.credentialId,
    TEAM_UID: own.teamUid,
    USER_UID: own.userUid,
    INVITATION_ID: own.invitationId,
    INVITATION_KEY: own.invitationKey,
    IDENTITY_UID: own.identityUid,
    GUEST_INVITATION_ID: own.guestInvitationId,
    POOL_NAME: own.poolName,
    PRINCIPAL_UID: own.principalUid,
    PASSKEY_ID: own.passkeyId,
    FACTORY_UID: own.factoryUid,
    APP_UID: own.appUid,
    INSTALLATION_UID: own.installationUid,
    TASK_UID: own.taskUid,
    WEBHOOK_UID: own.webhookUid,
    AUTOMATION_UID: own.automationUid,
    VERSION: '1',
    NAME: 'OWN',
    PROVIDER: 'google',
  };
}

const newFile = { artifact_type: 'FILE', data: { filename: 'b.txt', mime_type: 'text/plain' } };
const snapshot = { turn: 1, files: [{ filename: 'b.patch', size_bytes: 5 }] };

/** Creates the state that a command needs, and returns further variables of the command. */
const preparations: Partial<Record<RouteName, (own: OwnThings) => Promise<Variables>>> = {
  getBlob: async ({ artifactUid }) => {
    const { headers } = await service.request('GET', `/agent/artifacts/${artifactUid}/download`);
    return { SIGNED_URL: headers.get('location') ?? '' };
  },
  putArtifactContent: async ({ runToken: key }) => {
    const path = '/harness-support/report-artifact';
    const { body } = await service.request<{ upload_url: string }>('POST', path, { key, body: newFile });
    return { SIGNED_URL: body.upload_url };
  },
  putSnapshotFile: async ({ runToken: key }) => {
    const path = '/harness-support/upload-snapshot';
    const { body } = await service.request<{ files: { upload_url: string }[] }>('POST', path, { key, body: snapshot });
    return { SIGNED_URL: body.files[0]?.upload_url ?? '' };
  },
  putAttachment: async ({ runId }) => {
    const path = `/agent/runs/${runId}/attachments/prepare`;
    const body = { files: [{ filename: 'a.txt', mime_type: 'text/plain' }] };
    const answer = await service.request<{ attachments: { upload_url: string }[] }>('POST', path, { body });
    return { SIGNED_URL: answer.body.attachments[0]?.upload_url ?? '' };
  },
  getRunMessage: async ({ runId }) => {
    const { body } = await service.request<RunMessagePage>('GET', `/agent/runs/${runId}/conversation/messages`);
    return { MESSAGE_SEQ: String(body.steps[0]?.messages[0]?.seq) };
  },
  getFactoryFileSchemas: async () => ({ SCHEMA_VERSION: 'v1alpha1' }),
  getFactoryFileSchema: async () => ({ SCHEMA_VERSION: 'v1alpha1', DOCUMENT: 'factory.schema.json' }),
  getWebhookDelivery: async ({ webhookDeliveryId }) => ({ DELIVERY_ID: webhookDeliveryId }),
  getWebhookDeliveryPayload: async ({ webhookDeliveryId }) => ({ DELIVERY_ID: webhookDeliveryId }),
  replayWebhookDelivery: async ({ webhookDeliveryId }) => ({ DELIVERY_ID: webhookDeliveryId }),
  getFactorySource: async ({ sourcedFactoryUid }) => ({ FACTORY_UID: sourcedFactoryUid }),
  setFactorySource: async ({ sourcedFactoryUid }) => ({ FACTORY_UID: sourcedFactoryUid }),
  deleteFactorySource: async ({ sourcedFactoryUid }) => ({ FACTORY_UID: sourcedFactoryUid }),
  syncFactorySource: async ({ sourcedFactoryUid }) => ({ FACTORY_UID: sourcedFactoryUid }),
  getFactoryTaskByConversation: async ({ taskConversationId }) => ({ CONVERSATION_ID: taskConversationId }),
  getFactoryTaskByRun: async ({ taskRunId }) => ({ RUN_ID: taskRunId }),
  deleteFactoryTask: async ({ factoryUid }) => {
    const run = await service.request<{ run_id: string }>('POST', `/factory/${factoryUid}/runs`, {
      body: { prompt: 'a' },
    });
    const path = `/factory/${factoryUid}/task-by-run?run_id=${run.body.run_id}`;
    return { TASK_UID: (await service.request<{ uid: string }>('GET', path)).body.uid };
  },
  deleteRun: async () => {
    const runId = await service.newRun();
    await service.request('POST', `/agent/runs/${runId}/cancel`);
    return { RUN_ID: runId };
  },
  submitResult: async () => {
    const output_schema = { type: 'object', properties: { severity: { enum: ['low'] } } };
    return { RUN_TOKEN: (await service.startExecution({ config: { output_schema } })).runToken };
  },
  startFreshCheck: async () => ({ RUN_TOKEN: await runWithFreshCheck(service) }),
  getFreshCheck: () => startedFreshCheck(service),
  cancelFreshCheck: () => startedFreshCheck(service),
  openPullRequest: async () => {
    await service.request('POST', '/code-hosts', { body: { scope: 'team', kind: 'token', token: 'a' } });
    const github_repos = [{ owner: 'acme', repo: 'site' }];
    const environment = await service.request<{ uid: string }>('POST', '/agent/environments', {
      body: { config: { name: 'E', github_repos } },
    });
    const runId = await service.newRun({ config: { environment_id: environment.body.uid } });
    return { RUN_TOKEN: (await service.claimRun(runId)).runToken };
  },
  getNotification: async ({ runId }) => {
    const [made] = await service.deps.db.query<{ uid: string }>(
      "INSERT INTO inbox_items (team_id, kind, run_id) SELECT team_id, 'failed', id FROM runs WHERE id = $1 RETURNING uid",
      [runId],
    );
    return { NOTIFICATION_UID: made?.uid ?? '' };
  },
  updateSavedView: async () => ({ VIEW_ID: await newView() }),
  deleteSavedView: async () => ({ VIEW_ID: await newView() }),
  readSignInCode: async () => ({ SIGN_IN_CODE: await newSignInCode(service) }),
  createBrowserSession: async () => ({ SIGN_IN_CODE: await newSignInCode(service) }),
  joinTeam: async () => ({ RUNYARD_API_KEY: service.otherKey }),
  // The examples have only one provider, and the command before this one deletes its key.
  testModelProvider: async () => {
    await service.request('PUT', '/model-providers/google', { body: { key: 'a' } });
    return {};
  },
  readMemory: async ({ runToken: key }) => {
    await service.request('PUT', '/harness-support/memory?turn=1', { key, raw: 'a' });
    return {};
  },
  readWorkspace: async ({ runToken: key }) => {
    await service.request('PUT', '/harness-support/workspace?turn=1', { key, raw: 'a' });
    return {};
  },
};

/** Saves a view; returns its id. */
async function newView(): Promise<string> {
  const body = { name: 'Failed', path: '/runs?state=FAILED' };
  return (await service.request<{ id: string }>('POST', '/saved-views', { body })).body.id;
}

/**
 * These commands delete or change things that other commands read, or read the first revision of a thing. Each of these commands gets
 * separate things.
 */
const ending: readonly RouteName[] = [
  'cancelRun',
  'updateEventSubscription',
  'deleteEventSubscription',
  'finishTask',
  'reportShutdown',
  'deleteArtifact',
  'deleteModelProvider',
  'deleteEnvironment',
  'deleteSchedule',
  'removeTeamMember',
  'deleteTeamInvitation',
  'accept',
  'acceptTeamInvitation',
  'deletePasskey',
  'deleteAgentIdentity',
  'deleteAutomation',
  'deleteFactory',
  'deleteFactorySource',
  'deleteWebhook',
  'disableWebhook',
  'updateAutomation',
  'withdrawEnvironmentInvitation',
  'acceptEnvironmentInvitation',
  'declineEnvironmentInvitation',
  'leaveEnvironment',
  'deleteGithubApp',
  'releaseGithubInstallation',
  'deleteWorkerPool',
  'removeWorkerPoolConnector',
];

/**
 * Commands that the service refuses in this test, with the status. The run has the built-in harness, so the transcript of its conversation
 * is refused. The run's artifact is a file and not a screenshot. The command of a sign-out sends a key and not the cookie of a session. The
 * service has no identity provider.
 */
const refused: Partial<Record<RouteName, number>> = {
  endBrowserSession: 404,
  startSignOn: 404,
  // Needs the answer of an authenticator.
  createPasskey: 403,
  // Needs a patch that an agent has stored after a turn.
  readStoredChanges: 404,
  // No turn of the conversation has ended.
  forkConversation: 409,
  getConversationTranscript: 400,
  downloadConversationScreenshot: 404,
  // No issue or pull request started the run.
  answerOnGithub: 403,
  // GitHub gives the secrets of no App, and has sent nobody back.
  createGithubApp: 400,
  convertGithubApp: 400,
  finishGithubAuthorization: 400,
};

/** These streams do not end by themselves. */
const endless: readonly RouteName[] = ['streamTeamEvents', 'streamTeamDeliveries'];

const host = closeAtEnd(await startFakeGitHost({ api: makeFakePullRequestApi().api }));
await host.commit('acme', 'site', { 'README.md': 'a' });
const service = await openTestService({
  // Names of the domain `.invalid` have no address, so no example sends a request to a provider.
  env: { RUNYARD_CODE_HOST_URL: host.template, RUNYARD_GOOGLE_BASE_URL: 'https://provider.invalid' },
});
const shared = await makeThings();
/** The command of each operation. Building the document takes as long as several requests, so the test builds it only once. */
const commands: Map<RouteName, string> = commandsOf(service.baseUrl);
const folder = newFolder();

test.each(Object.keys(routes) as RouteName[])('runs the command of %s', async (name) => {
  const own = ending.includes(name) ? await makeThings(routes[name]) : shared;
  const variables = { ...(await variablesOf(own)), ...(await preparations[name]?.(own)) };
  // Runs the command unchanged, except for options that show the result to the test.
  const limit = endless.includes(name) ? 2 : 20;
  const script = `curl() { command curl --silent --show-error --max-time ${limit} --output body --write-out '%{http_code}' "$@"; }
${commands.get(name)}`;
  const { stdout } = await run('sh', ['-c', script], {
    cwd: folder,
    env: { PATH: process.env.PATH ?? '', ...variables },
  }).catch((error: { stdout: string; stderr: string }) => {
    if (endless.includes(name)) return { stdout: error.stdout };
    throw new Error(error.stderr);
  });
  const { status } = routes[name].answer;
  // With `-L`, curl follows the redirect to the bytes.
  expect(Number(stdout)).toBe(refused[name] ?? (status === 302 ? 200 : status));
});
