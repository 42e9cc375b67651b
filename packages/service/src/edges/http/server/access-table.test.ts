/**
 * Calls every route with every kind of credential that the route may treat differently, and compares the answers with the route's
 * declarations; `bin/test-long` uses every credential.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { type AllowKeys, isAtLeast } from '@runyard/contract/wire/access';
import { apiPrefix, type Route } from '@runyard/contract/wire/route';
import { describe, expect, test } from 'vitest';
import { ask } from '../../../../../../test/support/ask.ts';
import { isLong } from '../../../../../../test/support/long.ts';
import {
  type AccessRow,
  accessOf,
  accessRows,
  type Credential,
  credentials,
  sessionOf,
  someCredentials,
} from '../../../../test/access-table.ts';
import { newBrowserSession } from '../../../../test/browser-session.ts';
import { makeOwnThings } from '../../../../test/own-things.ts';
import { admitGuest } from '../../../../test/people.ts';
import { securityPage } from '../../../../test/security-page.ts';
import { openTestService } from '../../../../test/service.ts';
import { signUrl } from '../../../platform/secrets/signed-urls.ts';
import { endSandbox } from '../../../runs/executions/reconcile/sandbox-end.ts';

const service = await openTestService();
await service.deps.db.query('UPDATE teams SET max_concurrent_executions = 10000');

const deletedKey = await service.newKey();
await service.deps.db.query('DELETE FROM api_keys WHERE last_four = $1', [deletedKey.slice(-4)]);
const member = await service.newKey({ role: 'member' });
const viewer = await service.newKey({ role: 'viewer' });
const keys: Readonly<Partial<Record<Credential, string>>> = {
  operator: service.key,
  owner: await service.newKey({ role: 'owner' }),
  administrator: await service.newKey({ role: 'admin' }),
  member,
  viewer,
  agentKey: await service.newKey({ kind: 'agent' }),
  workerKey: await service.newKey({ kind: 'worker' }),
  otherTeam: service.otherKey,
  deletedKey,
  expiredKey: await service.newKey({ expiresIn: '-1 minute' }),
  unknownKey: `ryk_${'A'.repeat(43)}`,
};

const makeThings = async (credential: Credential, onlyFor?: Route) => {
  const person = sessionOf[credential] ?? credential;
  const isPerson = ['operator', 'owner', 'administrator', 'member', 'viewer'].includes(person);
  const keyOwner = person === 'viewer' ? viewer : member;
  // Only the author of a follow-up can change it.
  const isAuthor = credential === 'agentKey' && onlyFor?.path.includes('{followupId}');
  const things = await makeOwnThings(service, keyOwner, onlyFor, isPerson || isAuthor ? keys[person] : undefined);
  const { runId, executionId } = things.own;
  if (credential === 'stoppingRunToken') await service.request('POST', `/agent/runs/${runId}/cancel`);
  if (credential === 'endedRunToken')
    await endSandbox(service.deps.executionDeps, executionId, { kind: 'exited', message: 'The agent exited.' });
  return things;
};
type Things = Awaited<ReturnType<typeof makeThings>>;

const shared = new Map<Credential, Promise<Things>>();
/** Returns the things that a call needs if the call changes nothing. All such calls use the same things. */
function sharedThings(credential: Credential): Promise<Things> {
  const state = credential === 'stoppingRunToken' || credential === 'endedRunToken' ? credential : 'operator';
  const known = shared.get(state) ?? makeThings(state);
  shared.set(state, known);
  return known;
}

/** Statuses that a route may return besides its normal status, because of the state of the things and not because of the caller. */
const honestRefusals: Readonly<Record<string, number>> = {
  deleteRun: 409,
  interruptRun: 400,
  interruptConversation: 400,
  // No turn of the conversation has ended.
  forkConversation: 409,
  getRunConversation: 404,
  getRunMessage: 404,
  getRunTranscript: 404,
  getConversation: 404,
  getConversationTranscript: 400,
  checkSessionRedirect: 404,
  readMemory: 404,
  readWorkspace: 404,
  readStoredChanges: 404,
  // The run has no output schema.
  submitResult: 400,
  // The run has no checks.
  startFreshCheck: 400,
  getFreshCheck: 404,
  cancelFreshCheck: 404,
  // The run has no environment.
  openPullRequest: 404,
  // The environment of the run allows no tools for GitHub.
  answerOnGithub: 403,
  // The service has no identity provider.
  startSignOn: 404,
  // The body is not the answer of an authenticator.
  createPasskey: 403,
  // The callers are already members of the team.
  joinTeam: 409,
  // GitHub gives the secrets of no App, and has sent nobody back.
  createGithubApp: 400,
  convertGithubApp: 400,
  finishGithubAuthorization: 400,
};

/** Removes things whose number is limited for a team or a person. */
async function removeLimited(own: Things['own']): Promise<void> {
  await service.deps.db.query('DELETE FROM team_invitations');
  await service.deps.db.query('DELETE FROM code_host_credentials');
  const paths = [
    own.subscriptionId && `/event-subscriptions/${own.subscriptionId}`,
    own.serverId && `/agent/mcp-servers/${own.serverId}`,
    own.factoryUid && `/factory/${own.factoryUid}`,
    own.sourcedFactoryUid && `/factory/${own.sourcedFactoryUid}`,
    own.identityUid && `/agent/identities/${own.identityUid}`,
    own.scheduleId && `/agent/schedules/${own.scheduleId}`,
  ];
  for (const thing of paths) if (thing) await service.request('DELETE', thing);
}

const sessions = new Map<Credential, ReturnType<typeof newBrowserSession>>();
/** Signs in. With `isOwn`, for calls that change something, returns a new session. All other calls with this credential share one session. */
function sessionFor(credential: Credential, key: string | undefined, isOwn: boolean) {
  if (isOwn) return newBrowserSession(service, key);
  const known = sessions.get(credential) ?? newBrowserSession(service, key);
  sessions.set(credential, known);
  return known;
}

async function call(row: AccessRow, credential: Credential): Promise<{ status: number; text: string }> {
  const { route, name } = row;
  const isChanging = accessOf(route, credential) === 'yes' && route.method !== 'GET';
  const { own, requestOf } = isChanging ? await makeThings(credential, route) : await sharedThings(credential);
  const { path: asked, options } = requestOf(name, route);
  const tokens = credential.endsWith('unToken') ? own.runToken : undefined;
  const isJoining = name === 'joinTeam' && credential.startsWith('otherTeam');
  const joining = isJoining ? await service.newKey({ teamId: service.otherTeamId }) : undefined;
  const signedIn = sessionOf[credential];
  const key = tokens ?? joining ?? keys[signedIn ?? credential];
  const proof = signedIn
    ? await sessionFor(credential, key, isChanging)
    : key
      ? { authorization: `Bearer ${key}` }
      : {};
  const needsSignature = 'anyone' in route.allow && route.allow.anyone === 'with_signature';
  const unsigned = service.baseUrl + apiPrefix + asked;
  const method = route.method === 'PUT' ? 'PUT' : 'GET';
  const wrong = `?expires=${Math.ceil(Date.now() / 1000) + 60}&signature=${'A'.repeat(43)}`;
  const url =
    credential === 'signedUrl'
      ? signUrl(service.deps.signing, service.baseUrl, { method, path: asked }).url
      : unsigned + (needsSignature ? wrong : '');
  const body =
    options.raw ?? (options.body === undefined ? undefined : JSON.stringify({ ...options.body, ...row.body }));
  const answer = await ask(url, {
    method: route.method,
    leavesStream: true,
    headers: {
      ...proof,
      ...(options.body === undefined ? {} : { 'content-type': 'application/json' }),
      ...options.headers,
    },
    ...(body === undefined ? {} : { body }),
  });
  if (isChanging) {
    sessions.clear();
    await removeLimited(own);
  }
  return answer;
}

/** A person of another team who is a guest of an environment of the first team. */
async function newGuest({ own }: Things): Promise<string> {
  const key = await service.newKey({ teamId: service.otherTeamId, role: 'member' });
  const people = await service.deps.db.query<{ uid: string }>(
    'SELECT u.uid FROM users u JOIN api_keys k ON k.user_id = u.id WHERE k.last_four = $1 ORDER BY k.created_at DESC',
    [key.slice(-4)],
  );
  await admitGuest(service, own.environmentUid, { uid: people[0]?.uid ?? '', key });
  return key;
}

describe('a guest of an environment', () => {
  const ofTheTeam = accessRows.filter(
    ({ name, route }) => route.params && 'user' in route.allow && name !== 'putSecret' && name !== 'deleteSecret',
  );
  let guest: Promise<string> | undefined;
  test.each(ofTheTeam.map((row) => [`${row.name}${Object.values(row.body ?? {})}`, row] as const))(
    'reads the environment and nothing else of its team: %s',
    async (_, { name, route, body }) => {
      const things = await sharedThings('operator');
      guest ??= newGuest(things);
      const { path: asked, options } = things.requestOf(name, route);
      const { user: role, operator } = route.allow as AllowKeys;
      const given = { ...options, ...(options.body ? { body: { ...options.body, ...body } } : {}) };
      const { status } = await service.request(route.method, asked, { ...given, key: await guest });
      const isRefused = operator === true || !isAtLeast('member', role);
      const isOfGuest = name === 'getEnvironment' || name === 'leaveEnvironment';
      expect(status).toBe(isOfGuest ? 200 : isRefused ? 403 : 404);
      if (name === 'leaveEnvironment') guest = undefined;
    },
  );
});

const codes = {
  401: 'authentication_required',
  403: 'not_authorized',
  404: 'resource_not_found',
  409: 'conflict',
};

async function expectDeclared(row: AccessRow, credential: Credential): Promise<void> {
  const access = accessOf(row.route, credential);
  const { status, text } = await call(row, credential);
  const asked = `${credentials[credential]}: ${text}`;
  if (access !== 'yes') {
    expect([status, JSON.parse(text).error_code], asked).toEqual([access, codes[access]]);
    return;
  }
  const isElsewhere =
    credential.startsWith('otherTeam') &&
    ['findRunByExternalReference', 'findFactoryTask', 'accept'].includes(row.name);
  const isNoSession = row.name === 'endBrowserSession' && !sessionOf[credential];
  const isOutsider = credential.startsWith('otherTeam') && row.name === 'joinTeam';
  const honest = isOutsider ? undefined : isElsewhere || isNoSession ? 404 : honestRefusals[row.name];
  expect(status, asked).toBe(honest ?? row.route.answer.status);
}

// One test checks all callers of a route, because vitest would need some seconds more for thousands of separate tests.
test.each(accessRows.map((row, index) => [`${row.name}${Object.values(row.body ?? {})}`, row, index] as const))(
  '%s answers each caller as declared',
  async (_, row, index) => {
    const tried = isLong ? (Object.keys(credentials) as Credential[]) : someCredentials(row, index);
    for (const credential of tried) await expectDeclared(row, credential);
  },
);

test('docs/security.md names only tests that exist', () => {
  const root = path.dirname(path.dirname(securityPage));
  const files = [...readFileSync(securityPage, 'utf8').matchAll(/\]\(\.\.\/([\w./-]+\.test\.ts)\)/g)];
  expect(files.length).toBeGreaterThan(10);
  for (const [, file = ''] of files) expect(() => readFileSync(path.join(root, file)), file).not.toThrow();
});
