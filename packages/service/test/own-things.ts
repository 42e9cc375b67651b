/** Test support: one thing of each kind that the first team has, and a good request to each route of the contract about them. */
import { randomUUIDv7 } from 'node:crypto';
import type { Route } from '@runyard/contract/route';
import type { RequestOptions, TestService } from './service.ts';

/** Ids, and tokens of runs in progress. */
export interface OwnThings {
  readonly runId: string;
  readonly executionId: string;
  readonly conversationId: string;
  readonly runToken: string;
  readonly otherRunToken: string;
  readonly artifactUid: string;
  readonly attachmentId: string;
  readonly environmentUid: string;
  readonly keyUid: string;
  readonly fileId: string;
  readonly subscriptionId: string;
  readonly deliveryId: string;
  readonly factoryUid: string;
  /** A factory with a source, which takes no definition by hand. */
  readonly sourcedFactoryUid: string;
  readonly webhookUid: string;
  readonly webhookDeliveryId: string;
  readonly automationUid: string;
  readonly scheduleId: string;
  readonly serverId: string;
  readonly credentialId: string;
  /** A guest of the environment. */
  readonly userUid: string;
  readonly childRunId: string;
  /** An id that no session has. */
  readonly sessionUuid: string;
  /** Code of a sign-in link that was not used yet. */
  readonly signInCode: string;
  readonly teamUid: string;
  readonly invitationId: string;
  /** Key of an invitation that was not used yet. */
  readonly invitationKey: string;
  readonly identityUid: string;
}

/**
 * A path that names the own things, with the query that the route needs, and a body that would be accepted where the route
 * takes one. The URL of a route that needs a signature has none.
 */
export type RequestOfRoute = (
  name: string,
  route: Route,
) => { readonly path: string; readonly options: Pick<RequestOptions, 'body' | 'raw' | 'headers'> };

const minimalDefinition = [
  {
    path: 'factory.yaml',
    content: 'schemaVersion: v1alpha1\nname: F\nrepositories: []\nagentDefaults:\n  model: runbook\n',
  },
  { path: 'agents/foreman/agent.md', content: '---\nagentType: FOREMAN\n---\n' },
];
const schedule = { name: 'S', cron_schedule: '@yearly', prompt: 'a', enabled: true };

const bodies: Readonly<Record<string, unknown>> = {
  createRun: { prompt: 'a' },
  createRunDeprecated: { prompt: 'a' },
  createEnvironment: { config: { name: 'E' } },
  updateEnvironment: { config: { name: 'E' } },
  createEventSubscription: { url: 'https://example.com/', events: ['run.created'] },
  updateEventSubscription: { name: 'S' },
  createSchedule: schedule,
  updateSchedule: schedule,
  createFactory: { name: 'F' },
  dispatchFactory: { prompt: 'a' },
  applyFactoryDefinition: { files: minimalDefinition },
  setFactorySource: { repository: 'acme/factories' },
  createWebhook: { name: 'W' },
  updateWebhook: { name: 'W' },
  createMcpServer: { name: 'M', command: 'm' },
  updateMcpServer: { name: 'M' },
  updateModelSettings: { enable: ['runbook'] },
  putSecret: { value: 'a secret value', scope: 'personal' },
  createKey: { name: 'K', kind: 'personal' },
  reportEvents: { events: [] },
  reportArtifact: { artifact_type: 'PLAN', data: {} },
  openPullRequest: { repository: { owner: 'acme', repo: 'site' }, head: 'change', title: 'a' },
  finishTask: { success: true, summary: '' },
  uploadSnapshot: { turn: 1, files: [] },
  reportShutdown: { reason: 'x' },
  startChildRun: { prompt: 'a' },
  sendFollowup: { message: 'a' },
  createTeam: { name: 'T' },
  updateTeam: { name: 'T' },
  updateTeamMember: { role: 'viewer' },
  createTeamInvitation: { role: 'member' },
  createAgentIdentity: { name: 'I' },
  updateAgentIdentity: { name: 'J' },
};

const queries: Readonly<Record<string, string>> = {
  keepMemory: '?turn=1',
  deleteSecret: '?scope=personal',
  keepWorkspace: '?turn=1',
  findRunByExternalReference: '?url=https%3A%2F%2Fexample.com%2F1',
  streamRunEvents: '?follow=false',
};

/** Routes about things that are made at another path. */
const madeAt: Readonly<Record<string, string>> = {
  '/sign-in-codes': '/browser-session',
  '/team-invitations': '/team',
  '/teams': '/team',
};

/** Beginnings of the paths of routes that need no run. */
const withoutRuns = [
  ...['/agent/environments', '/agent/identities', '/agent/mcp-servers', '/agent/schedules', '/event-subscriptions'],
  ...['/factory', '/keys', '/code-hosts', '/secrets', '/team', '/sign-in-codes', '/browser-session'],
];

/** A route for anyone may be called with the token of a run too. */
const needsRun = ({ path, allow }: Route): boolean =>
  'anyone' in allow || !withoutRuns.some((beginning) => path.startsWith(beginning));

/** Tells whether the route is about what a POST to `path` makes. */
function isAbout(route: Route, path: string): boolean {
  const [, first, second] = path.split('/');
  const collection = first === 'agent' ? `/agent/${second}` : `/${first}`;
  return collection === '/harness-support' ? needsRun(route) : route.path.startsWith(madeAt[collection] ?? collection);
}

interface StartedRun {
  readonly runId: string;
  readonly executionId: string;
  readonly conversationId: string;
  readonly runToken: string;
  readonly attachmentId: string;
  readonly fileId: string;
  readonly otherRunToken: string;
}

const noRun: StartedRun = {
  runId: '',
  executionId: '',
  conversationId: '',
  runToken: '',
  attachmentId: '',
  fileId: '',
  otherRunToken: '',
};

/** Starts a run with an attachment and a file of a snapshot, and another run. */
async function startRun(service: TestService): Promise<StartedRun> {
  const { runId, executionId, conversationId, runToken } = await service.startExecution({
    mode: 'orchestrate',
    attachments: [{ file_name: 'a.txt', mime_type: 'text/plain', data: Buffer.from('a').toString('base64') }],
  });
  const snapshot = await service.request<{ files: { upload_url: string }[] }>(
    'POST',
    '/harness-support/upload-snapshot',
    { key: runToken, body: { turn: 1, files: [{ filename: 'a.patch', size_bytes: 1 }] } },
  );
  const [attachment] = await service.deps.db.query<{ id: string }>('SELECT id FROM attachments WHERE run_id = $1', [
    runId,
  ]);
  const { runToken: otherRunToken } = await service.startExecution();
  return {
    runId,
    executionId,
    conversationId,
    runToken,
    attachmentId: attachment?.id ?? '',
    fileId: new URL(snapshot.body.files[0]?.upload_url ?? '').pathname.split('/').at(-1) ?? '',
    otherRunToken,
  };
}

const automationOf = (webhookUid: string) => ({
  name: 'A',
  prompt: 'a',
  triggers: [{ provider: 'webhook', event: 'received', filter: { webhook_ids: [webhookUid] } }],
});

/**
 * Makes the things. `keyOwner` is the key whose owner has the key that `keyUid` names. For one route only, makes the things that the route
 * is about, because the things of all routes take most of the time of a request; the other ids are empty.
 */
export async function makeOwnThings(
  service: TestService,
  keyOwner = service.key,
  onlyFor?: Route,
): Promise<{ readonly own: OwnThings; readonly requestOf: RequestOfRoute }> {
  const { db } = service.deps;
  const isWanted = (path: string) => onlyFor === undefined || isAbout(onlyFor, path);
  const post = async (
    path: string,
    body?: unknown,
    key: string | null = service.key,
  ): Promise<Record<string, string>> => {
    if (!isWanted(path)) return {};
    const options = { key, ...(body === undefined ? {} : { body }) };
    return (await service.request<Record<string, string>>('POST', path, options)).body;
  };
  const run = onlyFor === undefined || needsRun(onlyFor) ? await startRun(service) : noRun;
  const { runToken } = run;
  const file = { artifact_type: 'FILE', data: { filename: 'a.txt', mime_type: 'text/plain' } };
  const reported = await post('/harness-support/report-artifact', file, runToken);
  if (reported.upload_url) await service.request('PUT', reported.upload_url, { key: null, raw: 'a' });
  const subscription = await post('/event-subscriptions', {
    url: 'https://example.com/',
    events: ['run.created'],
  });
  const key = await post('/keys', { name: 'K', kind: 'personal' }, keyOwner);
  const credential = await post('/code-hosts', { kind: 'token', owner: randomUUIDv7(), token: 'a' }, keyOwner);
  for (const owner of isWanted('/secrets') ? new Set([service.key, service.otherKey, keyOwner]) : [])
    await service.request('PUT', '/secrets/OWN', { key: owner, body: { value: 'a secret value', scope: 'personal' } });
  const child = await post('/harness-support/child-runs', { prompt: 'a' }, runToken);
  const reference = { reference_type: 'issue', url: 'https://example.com/1' };
  await post('/harness-support/report-artifact', { artifact_type: 'EXTERNAL_REFERENCE', data: reference }, runToken);
  const environment = await post('/agent/environments', { config: { name: 'E' } });
  const [team] = await db.query<{ uid: string }>('SELECT uid FROM teams WHERE id = $1', [service.teamId]);
  const invite = () => post(`/teams/${team?.uid}/invitations`, { role: 'member' });
  const accepted = { key: (await invite()).key, display_name: 'P' };
  const member = accepted.key
    ? await service.request<{ user: { uid: string } }>('POST', '/team-invitations/accept', {
        key: null,
        body: accepted,
      })
    : undefined;
  const invitation = await invite();
  const [someone] = await db.query<{ uid: string }>('SELECT uid FROM users ORDER BY id LIMIT 1');
  const userUid = member?.body.user.uid ?? someone?.uid ?? '';
  if (environment.uid) await service.request('PUT', `/agent/environments/${environment.uid}/guests/${userUid}`);
  const factory = await post('/factory', { name: 'F' });
  const webhook = await post(`/factory/${factory.uid}/webhooks`, { name: 'W' });
  if (factory.uid)
    await service.request('PUT', `/factory/${factory.uid}/definition`, { body: bodies.applyFactoryDefinition });
  const isSourced = onlyFor === undefined || onlyFor.path.includes('/source');
  const sourced = isSourced ? await post('/factory', { name: 'S' }) : {};
  if (sourced.uid) await service.request('PUT', `/factory/${sourced.uid}/source`, { body: bodies.setFactorySource });
  const received = webhook.url ? await post(webhook.url, {}, webhook.secret) : {};
  const automation = webhook.uid ? await post(`/factory/${factory.uid}/automations`, automationOf(webhook.uid)) : {};
  const own: OwnThings = {
    ...run,
    artifactUid: reported.artifact_uid ?? '',
    environmentUid: environment.uid ?? '',
    userUid,
    keyUid: key.uid ?? '',
    subscriptionId: subscription.id ?? '',
    deliveryId: (await post(`/event-subscriptions/${subscription.id}/test`)).id ?? '',
    factoryUid: factory.uid ?? '',
    sourcedFactoryUid: sourced.uid ?? '',
    webhookUid: webhook.uid ?? '',
    webhookDeliveryId: received.delivery_id ?? '',
    automationUid: automation.uid ?? '',
    scheduleId: (await post('/agent/schedules', schedule)).id ?? '',
    serverId: (await post('/agent/mcp-servers', { name: 'M', command: 'm' })).id ?? '',
    credentialId: credential.id ?? '',
    childRunId: child.run_id ?? '',
    sessionUuid: randomUUIDv7(),
    signInCode: (await post('/sign-in-codes')).code ?? '',
    teamUid: team?.uid ?? '',
    invitationId: invitation.id ?? '',
    invitationKey: invitation.key ?? '',
    identityUid: (await post('/agent/identities', { name: 'I' })).uid ?? '',
  };
  const requestOf: RequestOfRoute = (name, route) => {
    const uid = route.path.startsWith('/keys') ? own.keyUid : own.environmentUid;
    const deliveryId = route.path.startsWith('/factory') ? own.webhookDeliveryId : own.deliveryId;
    const values: Readonly<Record<string, string>> = {
      ...own,
      uid,
      deliveryId,
      factoryUid: route.path.includes('/source') ? own.sourcedFactoryUid : own.factoryUid,
      name: 'OWN',
      kind: 'artifact',
      id: own.artifactUid,
    };
    const path =
      route.path.replaceAll(/\{(\w+)\}/g, (_, member: string) => values[member] ?? '') + (queries[name] ?? '');
    if (route.bodyType) return { path, options: { raw: 'a', headers: { 'content-type': route.bodyType } } };
    if (!route.body) return { path, options: {} };
    if (name === 'createBrowserSession')
      return { path, options: { body: { code: own.signInCode }, headers: { origin: service.baseUrl } } };
    if (name === 'acceptTeamInvitation')
      return { path, options: { body: { key: own.invitationKey, display_name: 'Q' } } };
    if (name === 'joinTeam') return { path, options: { body: { key: own.invitationKey } } };
    // A team has one credential for an owner.
    if (name === 'createCodeHostCredential')
      return { path, options: { body: { kind: 'token', owner: randomUUIDv7(), token: 'a' } } };
    // A factory has each name of an automation once.
    if (name === 'createAutomation' || name === 'updateAutomation')
      return { path, options: { body: { ...automationOf(own.webhookUid), name: randomUUIDv7() } } };
    if (name === 'dryRunAutomation' || name === 'simulateDelivery') return { path, options: { body: { payload: {} } } };
    if (name === 'testFilter') return { path, options: { body: { filter: {}, payload: {} } } };
    const body = name === 'sendRunMessage' ? { run_id: own.childRunId, message: 'a' } : (bodies[name] ?? {});
    return { path, options: { body } };
  };
  return { own, requestOf };
}
