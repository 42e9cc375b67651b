/** Test support: makes one object of each kind for the first team, and a valid request to each route about these objects. */
import { randomUUIDv7 } from 'node:crypto';
import type { Route } from '@runyard/contract/wire/route';
import { newUid } from '../src/team/access/teams/uid.ts';
import { onlyHost } from '../src/team/code-hosts/url.ts';
import { automationOf, bodies, type RequestOfRoute, requestsAbout, schedule } from './own-requests.ts';
import type { TestService } from './service.ts';

/** The ids of the objects, and the tokens of runs in progress. */
export interface OwnThings {
  readonly runId: string;
  readonly executionId: string;
  readonly conversationId: string;
  readonly runToken: string;
  readonly otherRunToken: string;
  readonly artifactUid: string;
  /** A screenshot of the conversation. */
  readonly screenshotUid: string;
  readonly attachmentId: string;
  /** A file that was prepared for a follow-up but not uploaded. */
  readonly preparedAttachmentId: string;
  /** A follow-up that waits for the agent of the run. */
  readonly followupId: string;
  readonly environmentUid: string;
  readonly keyUid: string;
  readonly fileId: string;
  readonly subscriptionId: string;
  readonly deliveryId: string;
  readonly factoryUid: string;
  /** A factory with a source. Clients cannot apply a definition to it. */
  readonly sourcedFactoryUid: string;
  readonly webhookUid: string;
  readonly webhookDeliveryId: string;
  readonly automationUid: string;
  /** A task of the factory, its conversation and its run. */
  readonly taskUid: string;
  readonly taskConversationId: string;
  readonly taskRunId: string;
  readonly scheduleId: string;
  readonly serverId: string;
  readonly credentialId: string;
  /** A guest of the environment. */
  readonly userUid: string;
  readonly childRunId: string;
  /** An id that no session has. */
  readonly sessionUuid: string;
  /** Code of a sign-in link that nobody has used yet. */
  readonly signInCode: string;
  readonly teamUid: string;
  readonly invitationId: string;
  /** Key of an invitation to the team that nobody has used yet. */
  readonly invitationKey: string;
  readonly identityUid: string;
  /** An invitation of the owner of the key `invitee` to the environment. */
  readonly guestInvitationId: string;
  /** A saved view of the invited person. */
  readonly viewId: string;
  readonly notificationUid: string;
  /** A passkey of the invited person. */
  readonly passkeyId: string;
  readonly poolName: string;
  /** A person or service account that may connect workers to the pool. */
  readonly principalUid: string;
  /** A GitHub App of the team, with which every person has linked an account. */
  readonly appUid: string;
  /** A claimed installation of another App. */
  readonly installationUid: string;
}

/** For routes whose body or query must name an object: the object, by the path of the route. */
const namedInBody: Readonly<Record<string, keyof OwnThings>> = {
  '/acceptances': 'environmentUid',
  '/browser-sessions': 'signInCode',
  '/sign-in-codes/owner': 'signInCode',
  '/github/apps/{appUid}/authorization': 'factoryUid',
  '/team-invitations/accept': 'invitationKey',
  '/team-invitations/join': 'invitationKey',
  '/team-invitations/read': 'invitationKey',
  '/team-invitations/passkey-options': 'invitationKey',
  '/harness-support/messages': 'childRunId',
  '/factory/{factoryUid}/automations': 'webhookUid',
  '/factory/{factoryUid}/automations/test-filter/deliveries': 'webhookUid',
  '/factory/{factoryUid}/tasks': 'conversationId',
  '/factory/{factoryUid}/task-by-conversation': 'taskUid',
  '/factory/{factoryUid}/task-by-run': 'taskUid',
  '/factory/{factoryUid}/automations/{automationUid}': 'webhookUid',
};

/** Returns which members of `OwnThings` a request to the route needs. */
function namedBy({ path, params }: Route): Set<string> {
  const inBody = namedInBody[path];
  const names = [...Object.keys(params?.shape ?? {}), ...(inBody ? [inBody] : [])];
  return new Set(
    names.map((name) => (name === 'uid' ? (path.startsWith('/keys') ? 'keyUid' : 'environmentUid') : name)),
  );
}

const ofRuns = [
  'runId',
  'conversationId',
  'executionId',
  'artifactUid',
  'attachmentId',
  'fileId',
  'childRunId',
  'notificationUid',
  'id',
];

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

/** Starts a run with an attachment. If `wanted` says so, also adds a file of a snapshot and starts another run. */
async function startRun(
  service: TestService,
  wanted: { readonly file: boolean; readonly other: boolean },
): Promise<StartedRun> {
  const { runId, executionId, conversationId, runToken } = await service.startExecution({
    mode: 'orchestrate',
    attachments: [{ file_name: 'a.txt', mime_type: 'text/plain', data: Buffer.from('a').toString('base64') }],
  });
  const files = [{ filename: 'a.patch', size_bytes: 1 }];
  const path = '/harness-support/upload-snapshot';
  const snapshot = wanted.file
    ? await service.request<{ files: { upload_url: string }[] }>('POST', path, {
        key: runToken,
        body: { turn: 1, files },
      })
    : undefined;
  const [attachment] = await service.deps.db.query<{ id: string }>('SELECT id FROM attachments WHERE run_id = $1', [
    runId,
  ]);
  const other = wanted.other ? await service.startExecution() : undefined;
  const fileUrl = snapshot?.body.files[0]?.upload_url;
  return {
    runId,
    executionId,
    conversationId,
    runToken,
    attachmentId: attachment?.id ?? '',
    fileId: fileUrl === undefined ? '' : (new URL(fileUrl).pathname.split('/').at(-1) ?? ''),
    otherRunToken: other?.runToken ?? '',
  };
}

/**
 * Invites the owner of the key to the environment, and returns the id of the invitation. For the routes of guest environments, also
 * makes the person a guest at once, because these routes need an existing guest.
 */
async function inviteOwner(
  service: TestService,
  environmentUid: string,
  key: string,
  onlyFor?: Route,
): Promise<string> {
  const { db } = service.deps;
  const [person] = await db.query<{ id: string; uid: string }>(
    'SELECT u.id, u.uid FROM users u JOIN api_keys k ON k.user_id = u.id WHERE k.last_four = $1 ORDER BY k.created_at DESC',
    [key.slice(-4)],
  );
  if (!person) return '';
  if (onlyFor === undefined || onlyFor.path.startsWith('/guest-environments'))
    await db.query('INSERT INTO environment_guests (environment_uid, user_id) VALUES ($1, $2) ON CONFLICT DO NOTHING', [
      environmentUid,
      person.id,
    ]);
  const path = `/agent/environments/${environmentUid}/guest-invitations`;
  return (await service.request<{ id: string }>('POST', path, { body: { user_uid: person.uid } })).body.id;
}

/** Creates a pool of workers whose owner is the owner of the key, and a service account that may connect workers to the pool. */
async function insertPool(service: TestService, key: string): Promise<Pick<OwnThings, 'poolName' | 'principalUid'>> {
  const identity = await service.request<{ uid: string }>('POST', '/agent/identities', { body: { name: 'C' } });
  const pool = { poolName: `pool-${randomUUIDv7()}`, principalUid: identity.body.uid };
  await service.deps.db.query(
    `WITH pool AS (
       INSERT INTO worker_pools (team_id, name, owner_kind, owner_uid)
       SELECT $1, $2, 'user', u.uid FROM api_keys k JOIN users u ON u.id = k.user_id WHERE k.last_four = $4
       RETURNING team_id, name, owner_uid)
     INSERT INTO worker_pool_connectors (team_id, pool, kind, uid, added_by_uid)
     SELECT team_id, name, 'service_account', $3, owner_uid FROM pool`,
    [service.teamId, pool.poolName, pool.principalUid, key.slice(-4)],
  );
  return pool;
}

/** Inserts a GitHub App with a link of every person. The routes that create one need an answer of GitHub. Returns its UID. */
async function insertGithubApp({ deps, teamId }: TestService): Promise<string> {
  const uid = newUid();
  await deps.db.query(
    `WITH credential AS (
       INSERT INTO code_host_credentials (id, team_id, kind, host, owner, app_id, vault_key_id, sealed_secret)
       VALUES (gen_random_uuid(), $1, 'github_app', $3, $2, '1', 'k', '') RETURNING id),
     app AS (
       INSERT INTO github_apps (uid, team_id, credential_id, host, app_id, slug, client_id, vault_key_id, sealed_secrets)
       SELECT $2, $1, id, $3, 1, 'a', 'a', 'k', '' FROM credential RETURNING uid)
     INSERT INTO github_people (app_uid, github_id, user_uid, login)
     SELECT app.uid, row_number() OVER (), u.uid, 'a' FROM app, users u`,
    [teamId, uid, onlyHost(deps.settings.RUNYARD_CODE_HOST_URL)],
  );
  return uid;
}

/** Inserts a claimed installation of a new App. Returns its UID. */
async function insertGithubInstallation(service: TestService): Promise<string> {
  const appUid = await insertGithubApp(service);
  const factory = await service.request<{ uid: string }>('POST', '/factory', { body: { name: `G ${appUid}` } });
  const webhook = await service.request<{ uid: string }>('POST', `/factory/${factory.body.uid}/webhooks`, {
    body: { name: 'G' },
  });
  await service.deps.db.query(
    `INSERT INTO github_installations (uid, app_uid, team_id, installation_id, account_id, account_login, account_type, webhook_uid,
       factory_uid, subscription_id, claimed_by)
     VALUES ($1, $1, $2, 1, 1, 'a', 'User', $3, $4, gen_random_uuid(), 'a')`,
    [appUid, service.teamId, webhook.body.uid, factory.body.uid],
  );
  return appUid;
}

/** Adds a passkey that nobody can use for the owner of the key. Returns its id. */
async function insertPasskey(service: TestService, key: string): Promise<string> {
  const id = randomUUIDv7();
  await service.deps.db.query(
    `INSERT INTO passkeys (id, user_id, credential_id, public_key, counter, name, transports, is_synced)
     SELECT $1, user_id, $2, '', 0, 'P', '{}', false FROM api_keys WHERE last_four = $3 AND user_id IS NOT NULL
     ORDER BY created_at DESC LIMIT 1`,
    [id, Buffer.from(id), key.slice(-4)],
  );
  return id;
}

/**
 * Makes the objects. `keyOwner`: a key of the person who owns the key `keyUid`. `invitee`: a key of the person who is invited to the
 * environment, and who sends the follow-up. `onlyFor`: makes only the objects that a request to this route needs, and a run if a run token may call the route. All
 * other ids are empty. Making all objects would take most of a test's time.
 */
export async function makeOwnThings(
  service: TestService,
  keyOwner = service.key,
  onlyFor?: Route,
  invitee = keyOwner,
): Promise<{ readonly own: OwnThings; readonly requestOf: RequestOfRoute }> {
  const { db } = service.deps;
  const named = onlyFor && namedBy(onlyFor);
  const isNamed = (...names: readonly string[]) => named === undefined || names.some((name) => named.has(name));
  const post = async (
    isWanted: boolean,
    path: string,
    body?: unknown,
    key: string | null = service.key,
  ): Promise<Record<string, string>> => {
    if (!isWanted) return {};
    const options = { key, ...(body === undefined ? {} : { body }) };
    return (await service.request<Record<string, string>>('POST', path, options)).body;
  };
  const takesToken = onlyFor !== undefined && ('run' in onlyFor.allow || 'anyone' in onlyFor.allow);
  const run =
    takesToken || isNamed(...ofRuns)
      ? await startRun(service, { file: isNamed('fileId'), other: onlyFor === undefined })
      : noRun;
  const { runToken } = run;
  const report = '/harness-support/report-artifact';
  const file = { artifact_type: 'FILE', data: { filename: 'a.txt', mime_type: 'text/plain' } };
  const reported = await post(isNamed('artifactUid', 'id'), report, file, runToken);
  if (reported.upload_url) await service.request('PUT', reported.upload_url, { key: null, raw: 'a' });
  const picture = { artifact_type: 'SCREENSHOT', data: { mime_type: 'image/png' } };
  const screenshot = await post(isNamed('artifactUid'), report, picture, runToken);
  if (screenshot.upload_url) await service.request('PUT', screenshot.upload_url, { key: null, raw: 'a' });
  const prepared = isNamed('attachmentId')
    ? await service.request<{ attachments: { attachment_id: string }[] }>(
        'POST',
        `/agent/runs/${run.runId}/attachments/prepare`,
        { body: bodies.prepareRunAttachments },
      )
    : undefined;
  const send = (key: string) =>
    post(isNamed('followupId'), `/agent/runs/${run.runId}/followups`, { message: 'a' }, key);
  const sent = await send(invitee);
  // A viewer cannot send follow-ups.
  const waiting = sent.followup_id === undefined ? await send(service.key) : sent;
  const subscription = await post(isNamed('subscriptionId'), '/event-subscriptions', {
    url: 'https://example.com/',
    events: ['run.created'],
  });
  const key = await post(isNamed('keyUid'), '/keys', { name: 'K', kind: 'personal' }, keyOwner);
  const ofHost = { kind: 'token', owner: randomUUIDv7(), token: 'a' };
  const credential = await post(isNamed('credentialId'), '/code-hosts', ofHost, keyOwner);
  for (const owner of isNamed('name') ? new Set([service.key, service.otherKey, keyOwner]) : [])
    await service.request('PUT', '/secrets/OWN', { key: owner, body: { value: 'a secret value', scope: 'personal' } });
  const child = await post(isNamed('childRunId'), '/harness-support/child-runs', { prompt: 'a' }, runToken);
  const reference = { reference_type: 'issue', url: 'https://example.com/1' };
  const ofReference = { artifact_type: 'EXTERNAL_REFERENCE', data: reference };
  await post(onlyFor === undefined, report, ofReference, runToken);
  const environment = await post(isNamed('environmentUid', 'guestInvitationId'), '/agent/environments', {
    config: { name: 'E' },
  });
  const [team] = await db.query<{ uid: string }>('SELECT uid FROM teams WHERE id = $1', [service.teamId]);
  const invite = (isWanted: boolean) => post(isWanted, `/teams/${team?.uid}/invitations`, { role: 'member' });
  const accepted = { key: (await invite(isNamed('userUid'))).key, display_name: 'P' };
  const member = accepted.key
    ? await service.request<{ user: { uid: string } }>('POST', '/team-invitations/accept', {
        key: null,
        body: accepted,
      })
    : undefined;
  const invitation = await invite(isNamed('invitationId', 'invitationKey'));
  const [someone] = await db.query<{ uid: string }>('SELECT uid FROM users ORDER BY id LIMIT 1');
  const userUid = member?.body.user.uid ?? someone?.uid ?? '';
  if (environment.uid && isNamed('userUid'))
    await db.query(
      'INSERT INTO environment_guests (environment_uid, user_id) SELECT $1, id FROM users WHERE uid = $2',
      [environment.uid, userUid],
    );
  const guest = environment.uid ? await inviteOwner(service, environment.uid, invitee, onlyFor) : '';
  const isSource = onlyFor?.path.includes('/source') === true;
  const factory = await post(isNamed('factoryUid') && !isSource, '/factory', { name: 'F' });
  const needsWebhook = isNamed('webhookUid', 'automationUid');
  const webhook = await post(needsWebhook, `/factory/${factory.uid}/webhooks`, { name: 'W' });
  if (factory.uid)
    await service.request('PUT', `/factory/${factory.uid}/definition`, { body: bodies.applyFactoryDefinition });
  const sourced = await post(onlyFor === undefined || isSource, '/factory', { name: 'S' });
  if (sourced.uid) await service.request('PUT', `/factory/${sourced.uid}/source`, { body: bodies.setFactorySource });
  const received = await post(isNamed('deliveryId') && !!webhook.url, webhook.url ?? '', {}, webhook.secret);
  const isAutomation = isNamed('automationUid');
  const automations = `/factory/${factory.uid}/automations`;
  const automation = await post(isAutomation, automations, automationOf(webhook.uid ?? ''));
  const dispatched = await post(isNamed('taskUid'), `/factory/${factory.uid}/runs`, { prompt: 'a' });
  const task = dispatched.run_id
    ? await service.request<Record<string, string>>(
        'GET',
        `/factory/${factory.uid}/task-by-run?run_id=${dispatched.run_id}`,
      )
    : undefined;
  if (isNamed('provider')) await service.request('PUT', '/model-providers/google', { body: bodies.putModelProvider });
  const pool = isNamed('poolName') ? await insertPool(service, keyOwner) : { poolName: '', principalUid: '' };
  const [notification] = isNamed('notificationUid')
    ? await db.query<{ uid: string }>(
        "INSERT INTO inbox_items (team_id, kind, run_id) VALUES ($1, 'failed', $2) RETURNING uid",
        [service.teamId, run.runId],
      )
    : [];
  const own: OwnThings = {
    ...run,
    artifactUid: reported.artifact_uid ?? '',
    screenshotUid: screenshot.artifact_uid ?? '',
    followupId: waiting.followup_id ?? '',
    preparedAttachmentId: prepared?.body.attachments[0]?.attachment_id ?? '',
    environmentUid: environment.uid ?? '',
    userUid,
    keyUid: key.uid ?? '',
    subscriptionId: subscription.id ?? '',
    deliveryId:
      (await post(isNamed('deliveryId') && !!subscription.id, `/event-subscriptions/${subscription.id}/test`)).id ?? '',
    factoryUid: factory.uid ?? '',
    sourcedFactoryUid: sourced.uid ?? '',
    webhookUid: webhook.uid ?? '',
    webhookDeliveryId: received.delivery_id ?? '',
    automationUid: automation.uid ?? '',
    taskUid: task?.body.uid ?? '',
    taskConversationId: task?.body.conversation_id ?? '',
    taskRunId: dispatched.run_id ?? '',
    scheduleId: (await post(isNamed('scheduleId'), '/agent/schedules', schedule)).id ?? '',
    serverId: (await post(isNamed('serverId'), '/agent/mcp-servers', { name: 'M', command: 'm' })).id ?? '',
    credentialId: credential.id ?? '',
    childRunId: child.run_id ?? '',
    sessionUuid: randomUUIDv7(),
    signInCode: (await post(isNamed('signInCode'), '/sign-in-codes')).code ?? '',
    teamUid: team?.uid ?? '',
    invitationId: invitation.id ?? '',
    invitationKey: invitation.key ?? '',
    ...pool,
    guestInvitationId: guest,
    appUid: isNamed('appUid') ? await insertGithubApp(service) : '',
    installationUid: isNamed('installationUid') ? await insertGithubInstallation(service) : '',
    viewId: (await post(isNamed('viewId'), '/saved-views', bodies.createSavedView, invitee)).id ?? '',
    notificationUid: notification?.uid ?? '',
    passkeyId: isNamed('passkeyId') ? await insertPasskey(service, invitee) : '',
    identityUid: (await post(isNamed('identityUid'), '/agent/identities', { name: 'I' })).uid ?? '',
  };
  return { own, requestOf: requestsAbout(own, service.baseUrl) };
}
