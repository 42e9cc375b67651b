/** Tests that the events of GitHub show what became of the pull requests of runs. The payloads are those that GitHub has recorded. */
import { createRequire } from 'node:module';
import type { RunItem } from '@runyard/contract/runs/runs';
import { beforeAll, expect, test } from 'vitest';
import { openGithubService } from '../../../../test/github.ts';
import { readPlaceOfRun } from '../../../triggers/github/places.ts';
import { startWaiting } from '../../../triggers/starts/settle.ts';

interface Recorded {
  readonly name: string;
  readonly examples: readonly (Record<string, unknown> & { readonly action?: string })[];
}
const recorded: readonly Recorded[] = createRequire(import.meta.url)('@octokit/webhooks-examples');

const setup = await openGithubService();
const { github, service, deps, acme, installed, claim, automations } = setup;
const { db } = deps;
const person = github.account('reviewer');
const url = 'https://github.com/acme/site/pull/7';
let headSha = 'a'.repeat(40);
let runId: string;
let minutes = 0;

/** Sends an event about the pull request, a minute after the last one. */
async function send(name: string, action: string, members: object = {}, sender: object = person, review = {}) {
  minutes += 1;
  const example = recorded.find((each) => each.name === name)?.examples.find((each) => each.action === action);
  const payload = structuredClone(example ?? {}) as Record<string, Record<string, unknown>>;
  const at = new Date(Date.UTC(2026, 0, 1, 0, minutes)).toISOString();
  Object.assign(payload.pull_request ?? {}, {
    html_url: url,
    updated_at: at,
    created_at: at,
    number: 7,
    head: { ref: 'fix', sha: headSha, repo: { id: 1 } },
    ...members,
  });
  if (payload.review) Object.assign(payload.review, { state: 'changes_requested', user: sender }, review);
  if (payload.check_suite) {
    const head = { ref: 'fix', sha: headSha, repo: { id: 1 } };
    const suite = { head_sha: headSha, updated_at: at, pull_requests: [{ number: 7, head }] };
    Object.assign(payload.check_suite, suite, members);
  }
  if (payload.comment) Object.assign(payload.comment, { user: sender });
  if (payload.issue) Object.assign(payload.issue, { html_url: url, pull_request: { url } });
  Object.assign(payload.repository ?? {}, { id: 1, full_name: 'acme/site', html_url: 'https://github.com/acme/site' });
  const about = { installation: { id: installed.id }, sender: { type: 'User', ...sender } };
  return await github.send(name, { ...payload, ...about });
}
const status = async () => {
  const { artifacts } = (await service.request<RunItem>('GET', `/agent/runs/${runId}`)).body;
  return artifacts?.map((each) => (each.artifact_type === 'PULL_REQUEST' ? each.data.status : ''));
};
const events = () =>
  db.query('SELECT kind, is_person FROM pull_request_events WHERE url = $1 ORDER BY occurred_at', [url]);

beforeAll(async () => {
  await claim();
  const subscription = { url: 'https://example.com/', events: ['run.pull_request_changed'] };
  expect((await service.request('POST', '/event-subscriptions', { body: subscription })).status).toBe(201);
  const execution = await service.startExecution();
  runId = execution.runId;
  const body = { artifact_type: 'PULL_REQUEST', data: { url, branch: 'fix' } };
  const reported = await service.request('POST', '/harness-support/report-artifact', { key: execution.runToken, body });
  expect(reported.status, reported.text).toBeLessThan(300);
});

test('a pull request is unknown until an event of it arrives, and then shows its state', async () => {
  expect(acme.login).toBe('acme');
  expect(await status()).toEqual(['unknown']);
  await send('pull_request', 'opened', { state: 'open', draft: true, merged_at: null, closed_at: null }, github.bot);
  expect(await status()).toEqual(['draft']);
  await send('pull_request', 'synchronize', { state: 'open', draft: false, merged_at: null, closed_at: null });
  expect(await status()).toEqual(['open']);
});

test('an event that comes twice, or late, changes nothing', async () => {
  const [delivery] = github.deliveries.slice(-1);
  const before = await events();
  if (delivery) await github.redeliver(delivery);
  const late = { state: 'closed', merged_at: null, updated_at: '2020-01-01T00:00:00Z' };
  const again = structuredClone(delivery?.payload ?? {}) as { pull_request: object };
  Object.assign(again.pull_request, late);
  await github.send('pull_request', again as never);
  expect(await status()).toEqual(['open']);
  expect(await events()).toHaveLength(before.length + 1);
});

test('events record what people and programs did, and that the whole history is known', async () => {
  await send('pull_request_review', 'submitted', {});
  await send('issue_comment', 'created', {}, { ...github.bot });
  await send('pull_request', 'closed', {
    state: 'closed',
    merged: true,
    merged_at: '2026-01-01T01:00:00Z',
    closed_at: '2026-01-01T01:00:00Z',
    merged_by: { login: 'reviewer', type: 'User' },
  });
  // The App has pushed the commit, so it is the sender of the event.
  await send('check_suite', 'completed', { conclusion: 'failure' }, github.bot);
  await send('check_suite', 'completed', {}, github.bot);
  // Checks of another commit, of a fork, and of the App itself do not count.
  await send('check_suite', 'completed', { id: 2, head_sha: 'b'.repeat(40) });
  const fork = { number: 7, head: { ref: 'fix', sha: headSha, repo: { id: 2 } } };
  await send('check_suite', 'completed', { id: 2, pull_requests: [fork] });
  await send('check_suite', 'completed', { id: 2, app: { id: github.app.id, name: 'own' } });
  expect(await status()).toEqual(['merged']);
  const kinds = await events();
  expect(kinds[0]).toEqual({ kind: 'opened', is_person: false });
  expect(kinds.slice(-3)).toEqual([
    { kind: 'pr_action', is_person: true },
    { kind: 'checks_completed', is_person: false },
    { kind: 'checks_completed', is_person: false },
  ]);
  // A comment of the App itself is no event of the pull request.
  expect(kinds.filter(({ kind }) => kind === 'comment')).toEqual([]);
  const [row] = await db.query('SELECT state, history_complete FROM pull_requests WHERE url = $1', [url]);
  expect(row).toEqual({ state: 'merged', history_complete: true });
});

test('the run shows who did what, and subscribers get each change once', async () => {
  const { artifacts } = (await service.request<RunItem>('GET', `/agent/runs/${runId}`)).body;
  expect(artifacts?.[0]?.data).toMatchObject({
    status: 'merged',
    activity: {
      merged_by: { login: 'reviewer', is_person: true },
      merged_at: '2026-01-01T01:00:00.000000Z',
      first_human_review_at: expect.any(String),
      reviews: [{ login: 'reviewer', is_person: true, decision: 'changes_requested', decided_at: expect.any(String) }],
      checks: [{ app: 'octocoders-linter', conclusion: 'success', completed_at: expect.any(String) }],
      human_interactions: { opened: 0, code_push: 2, review_changes_requested: 1, comment: 0, pr_action: 1, total: 4 },
      human_code_change: true,
      history_complete: true,
    },
  });
  const rows = await db.query<{ data: { pull_request: object } }>(
    `SELECT data FROM event_deliveries WHERE event = 'run.pull_request_changed' ORDER BY id`,
  );
  expect(rows[0]?.data).toMatchObject({
    run_id: runId,
    pull_request: { url, status: 'draft', change: 'opened', login: github.bot.login, is_person: false },
  });
  expect(rows.at(-1)?.data.pull_request).toMatchObject({ change: 'checks_completed', conclusion: 'success' });
  expect(rows).toHaveLength((await events()).length);
});

test('the newest decision of each reviewer counts unless it was dismissed', async () => {
  const reviews = async () => {
    const { artifacts } = (await service.request<RunItem>('GET', `/agent/runs/${runId}`)).body;
    const data = artifacts?.flatMap((each) => (each.artifact_type === 'PULL_REQUEST' ? [each.data] : []))[0];
    return data?.activity?.reviews.map(({ login, decision }) => `${login} ${decision}`);
  };
  const second = github.account('second');
  const review = (id: number, state: string, by: object, action = 'submitted') =>
    send('pull_request_review', action, {}, by, { id, state });
  await review(51, 'approved', second);
  await review(52, 'changes_requested', second);
  await review(53, 'commented', second);
  expect(await reviews()).toEqual(['second changes_requested', 'reviewer changes_requested']);
  // Somebody else dismisses it. The earlier approval of the reviewer does not count again.
  await review(52, 'dismissed', person, 'dismissed');
  expect(await reviews()).toEqual(['reviewer changes_requested']);
  await review(54, 'approved', second);
  expect(await reviews()).toEqual(['second approved', 'reviewer changes_requested']);
});

test('failed checks and requested changes start an automation for a pull request of a run, at most max_starts times', async () => {
  const member = await setup.person('member');
  const outsider = github.account('outsider');
  const own = { own_pull_request: { max_starts: 3 } };
  await automations.create(
    [
      { provider: 'github', event: 'check_suite_completed', filter: { conclusions: ['failure'], ...own } },
      {
        provider: 'github',
        event: 'pull_request_review_submitted',
        filter: { review_states: ['changes_requested'], ...own },
      },
    ],
    { overlap: 'allow' },
  );
  const count = async () => (await db.query('SELECT FROM runs')).length;
  const before = await count();
  const fails = (sha: string, members: object = {}) => {
    headSha = sha.repeat(40);
    return send('check_suite', 'completed', { conclusion: 'failure', ...members }, github.bot);
  };
  const review = (sender: object, members: object = {}) => send('pull_request_review', 'submitted', members, sender);
  const why = async () => {
    const [row] = await db.query<{ outcomes: { reason?: string }[] }>(
      'SELECT outcomes FROM webhook_deliveries ORDER BY id DESC LIMIT 1',
    );
    return row?.outcomes[0]?.reason;
  };
  // The run has reported the pull request, but has pushed nothing: anybody could have opened it.
  await fails('c');
  expect(await why()).toContain('no run of the team has pushed the branch of this pull request');
  await db.query(
    `INSERT INTO pushed_branches (run_id, execution_id, repository, result, number, branch, from_id, to_id)
     SELECT id, current_execution_id, 'acme/site', 'pushed', 1, 'fix', '', '' FROM runs WHERE id = $1`,
    [runId],
  );
  await fails('d', { app: { id: github.app.id, name: 'own' } });
  await fails('d', { conclusion: 'success' });
  await review(outsider);
  await review(github.account('critic[bot]', 'Bot'));
  await review(member.account, { head: { ref: 'fix', sha: headSha, repo: { id: 2 } } });
  expect(await count()).toBe(before);
  await Promise.all([fails('d'), fails('d', { id: 3 })]);
  expect(await count(), 'two checks of one commit').toBe(before + 1);
  const [started] = await db.query<{ checkout: object }>(
    'SELECT checkout FROM run_requests ORDER BY run_id DESC LIMIT 1',
  );
  expect(started?.checkout, 'the run works on the head').toMatchObject({ number: 7, commit: headSha, is_fork: false });
  await review(member.account);
  expect(await count()).toBe(before + 2);
  await Promise.all([fails('e'), fails('f')]);
  expect(await count(), 'of two events at once, one exceeds the limit').toBe(before + 3);
  await review(member.account);
  expect(await count()).toBe(before + 3);
  expect(await why()).toContain('has started 3 runs for this pull request, the limit of max_starts');
  // A replay by hand counts too.
  const [last] = await db.query<{ id: string; webhook_uid: string }>(
    'SELECT id, webhook_uid FROM webhook_deliveries ORDER BY id DESC LIMIT 1',
  );
  await service.request(
    'POST',
    `/factory/${setup.factory.uid}/webhooks/${last?.webhook_uid}/deliveries/${last?.id}/replay`,
  );
  expect(await count()).toBe(before + 3);
});

test('a run for a comparison has no place on GitHub, with any metadata', async () => {
  const [started] = await db.query<{ run_id: string; webhook_uid: string }>(
    `SELECT run_id, webhook_uid FROM starts WHERE pull_request_url = $1 AND outcome = 'started' LIMIT 1`,
    [url],
  );
  const placeOf = async (body: object) => {
    const made = await service.request<{ run_id: string }>('POST', `/agent/runs/${started?.run_id}/rerun`, { body });
    expect(made.status, made.text).toBe(200);
    return await readPlaceOfRun(db, made.body.run_id, null);
  };
  expect(await placeOf({})).not.toBeNull();
  expect(await placeOf({ comparison: true, metadata: { webhook_uid: started?.webhook_uid ?? '' } })).toBeNull();
});

test('a pull request that such a run opens is counted together with the first one', async () => {
  const [started] = await db.query<{ id: string }>(
    `SELECT run_id AS id FROM starts WHERE pull_request_url = $1 AND outcome = 'started' LIMIT 1`,
    [url],
  );
  const second = url.replace('/7', '/8');
  await db.query(
    `INSERT INTO artifacts (id, team_id, run_id, execution_id, conversation_id, artifact_type, data, is_ready, canonical_url)
     SELECT gen_random_uuid(), team_id, id, current_execution_id, conversation_id, 'PULL_REQUEST', $2, true, $3 FROM runs WHERE id = $1`,
    [started?.id, JSON.stringify({ url: second, branch: 'again' }), second],
  );
  await db.query(
    `INSERT INTO pushed_branches (run_id, execution_id, repository, result, number, branch, from_id, to_id)
     SELECT id, current_execution_id, 'acme/site', 'pushed', 1, 'again', '', '' FROM runs WHERE id = $1`,
    [started?.id],
  );
  const before = (await db.query('SELECT FROM runs')).length;
  headSha = '8'.repeat(40);
  const pulls = [{ number: 8, head: { ref: 'again', sha: headSha, repo: { id: 1 } } }];
  await send('check_suite', 'completed', { conclusion: 'failure', pull_requests: pulls }, github.bot);
  expect((await db.query('SELECT FROM runs')).length).toBe(before);
});

test('checks of a commit that the App has pushed start only automations with own_pull_request', async () => {
  const filter = { conclusions: ['failure'] };
  await automations.create([{ provider: 'github', event: 'check_suite_completed', filter }], { overlap: 'allow' });
  const before = (await db.query('SELECT FROM runs')).length;
  headSha = '9'.repeat(40);
  await send('check_suite', 'completed', { conclusion: 'failure' }, github.bot);
  expect((await db.query('SELECT FROM runs')).length).toBe(before);
  await send('check_suite', 'completed', { conclusion: 'failure' });
  expect((await db.query('SELECT FROM runs')).length).toBe(before + 1);
});

const startsOf = (uid: string) =>
  db.query<{ outcome: string; reason: string | null }>(
    'SELECT outcome, reason FROM starts WHERE automation_uid = $1 ORDER BY id',
    [uid],
  );

test('starts that waited for the lock of their automation are counted again when they start', async () => {
  const filter = { conclusions: ['failure'], own_pull_request: { max_starts: 1 } };
  const { uid } = await automations.create([{ provider: 'github', event: 'check_suite_completed', filter }], {
    overlap: 'allow',
  });
  headSha = '1'.repeat(40);
  await db.transaction(async (tx) => {
    await tx.query('SELECT FROM automations WHERE uid = $1 FOR NO KEY UPDATE', [uid]);
    await send('check_suite', 'completed', { conclusion: 'failure' });
  });
  expect(await startsOf(uid)).toMatchObject([{ outcome: 'waiting', reason: expect.stringContaining('locked') }]);
  // As a delivery to another webhook leaves it, which another process wrote at the same moment.
  await db.query(
    `INSERT INTO starts (automation_uid, webhook_uid, delivery_id, lane, outcome, reason, undecided, pull_request_url, pull_request_head,
       pull_request_max_starts)
     SELECT s.automation_uid, s.webhook_uid, d.id, s.lane, s.outcome, s.reason, s.undecided, s.pull_request_url, $2, s.pull_request_max_starts
     FROM starts s JOIN webhook_deliveries d ON d.webhook_uid = s.webhook_uid AND d.id <> s.delivery_id AND d.payload IS NOT NULL
     WHERE s.automation_uid = $1 LIMIT 1`,
    [uid, '2'.repeat(40)],
  );
  await startWaiting(deps);
  expect(await startsOf(uid)).toMatchObject([
    { outcome: 'started' },
    { outcome: 'skipped', reason: expect.stringContaining('the limit of max_starts') },
  ]);
});

test('checks of pushes of runs start an automation ten times, until a person pushes or a member writes', async () => {
  const filter = { conclusions: ['failure'] };
  const { uid } = await automations.create([{ provider: 'github', event: 'check_suite_completed', filter }], {
    overlap: 'allow',
  });
  const machine = github.account('machine-user');
  const count = async () => (await startsOf(uid)).length;
  let commit = 0;
  /** A push of a machine user, and its failed checks. */
  const pushed = async (byRun: boolean) => {
    commit += 1;
    headSha = commit.toString(16).padStart(40, 'e');
    if (byRun)
      await db.query(
        `INSERT INTO pushed_branches (run_id, execution_id, repository, result, number, branch, from_id, to_id)
         SELECT id, current_execution_id, 'acme/site', 'sent', $2, 'fix', '', $3 FROM runs WHERE id = $1`,
        [runId, 100 + commit, headSha],
      );
    await send('pull_request', 'synchronize', { state: 'open', merged_at: null, closed_at: null }, machine);
    await send('check_suite', 'completed', { conclusion: 'failure' }, machine);
  };
  const earlier = (starts: number) =>
    db.query(
      `INSERT INTO starts (automation_uid, outcome, run_id, about_pull_request) SELECT $1, 'started', gen_random_uuid(), $2
       FROM generate_series(1, $3::int)`,
      [uid, url, starts],
    );
  await earlier(8);
  for (let n = 0; n < 3; n += 1) await pushed(true);
  expect(await count()).toBe(10);
  const [log] = await db.query<{ outcomes: { automation_id: string; reason?: string }[] }>(
    'SELECT outcomes FROM webhook_deliveries ORDER BY id DESC LIMIT 1',
  );
  expect(log?.outcomes.find(({ automation_id: id }) => id === uid)?.reason).toContain(
    'has started 10 runs for this pull request since a person last acted there',
  );
  await send('issue_comment', 'created', {}, machine);
  await pushed(true);
  expect(await count(), 'a comment of an account without a link does not reset the count').toBe(10);
  const writer = await setup.person('writer');
  await send('issue_comment', 'created', {}, writer.account);
  await pushed(true);
  expect(await count()).toBe(11);
  await earlier(9);
  await pushed(true);
  expect(await count()).toBe(20);
  await pushed(false);
  expect(await count(), 'a commit that no run has pushed').toBe(21);
});

test('another team does not see the state, although it names the same address', async () => {
  const { body } = await service.request<{ run_id: string }>('POST', '/agent/runs', {
    key: service.otherKey,
    body: { prompt: 'x' },
  });
  await db.query(
    `INSERT INTO artifacts (id, team_id, run_id, execution_id, conversation_id, artifact_type, data, is_ready, canonical_url)
     SELECT gen_random_uuid(), team_id, id, current_execution_id, conversation_id, 'PULL_REQUEST', $2, true, $3 FROM runs WHERE id = $1`,
    [body.run_id, JSON.stringify({ url, branch: 'x' }), url],
  );
  const read = await service.request<RunItem>('GET', `/agent/runs/${body.run_id}`, { key: service.otherKey });
  expect(read.body.artifacts).toMatchObject([{ data: { status: 'unknown' } }]);
});
