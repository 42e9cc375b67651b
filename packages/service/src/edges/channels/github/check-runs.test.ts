/** Tests the check run that shows a run on the head of its pull request. */
import { expect, test, vi } from 'vitest';
import type { FakeIssue } from '../../../../../../test/fakes/github/objects.ts';
import { openGithubService } from '../../../../test/github.ts';
import { annotationsOf } from './annotations.ts';

const test1 = await openGithubService();
const { github, service, deps, acme, automations, person, claim, openDeliverer } = test1;
const { db } = deps;
const withChecks = { ...test1.installed.permissions, checks: 'write' };
test1.installed.permissions = withChecks;
await claim();
const ann = await person('ann');
const closed = github.repository(acme, 'closed', true);
const deliverer = await openDeliverer();
await automations.create(
  ['pull_request_mentioned', 'issue_mentioned'].map((event) => ({
    provider: 'github',
    event,
    filter: { mentioned: [github.app.slug] },
  })),
  { config: { name: 'Review' } },
);
const newPull = () => github.issue(closed, ann.account, { head: String(github.newId()).padStart(40, 'a') });
const lastRun = async () =>
  (await db.query<{ id: string }>('SELECT id FROM runs ORDER BY id DESC LIMIT 1'))[0]?.id ?? '';
const checksOf = ({ head }: FakeIssue) => github.checkRuns.filter(({ headSha }) => headSha === head);
const shows = (pull: FakeIssue, members: object, many = 1) =>
  vi.waitFor(async () => {
    await db.query(
      `UPDATE event_deliveries SET next_attempt_at = now() WHERE status = 'pending' AND leased_until IS NULL`,
    );
    await deliverer.deliver();
    expect(checksOf(pull)).toHaveLength(many);
    expect(checksOf(pull).at(-1)).toMatchObject(members);
  }, 60_000);
const report = (key: string, path: string, body: object) =>
  service.request('POST', `/harness-support/${path}`, { key, body });
const at = new Date().toISOString();
const events = (key: string, ...all: object[]) =>
  report(key, 'events', { events: all.map((each) => ({ occurred_at: at, ...each })) });
const began = { seq: 1, type: 'agent_started', harness: 'oz', model_id: 'runbook' };

async function started() {
  const pull = newPull();
  await github.comment(pull, ann.account, `@${github.app.slug} review`);
  const runId = await lastRun();
  await shows(pull, { status: 'queued', name: 'Runyard: Review', externalId: runId });
  const { runToken } = await service.claimRun(runId);
  return { pull, runId, token: runToken };
}

/** Sends the event of the button "Re-run". */
const again = (
  pull: FakeIssue,
  by = ann.account,
  of: { id?: number; app?: number; run?: string; repository?: number; installation?: number } = {},
) => {
  const [check] = checksOf(pull);
  return github.send('check_run', {
    action: 'rerequested',
    check_run: {
      id: of.id ?? check?.id,
      external_id: of.run ?? check?.externalId,
      app: { id: of.app ?? github.app.id },
    },
    repository: { id: of.repository ?? closed.id, full_name: 'acme/closed', private: true },
    sender: { id: by.id, login: by.login, type: by.type },
    installation: { id: of.installation ?? test1.installed.id },
  });
};
const count = async () => (await db.query<{ n: number }>('SELECT count(*)::int AS n FROM runs'))[0]?.n;

test('one check run goes from queued to action required and to its conclusion, with annotations once', async () => {
  const { pull, runId, token } = await started();
  await events(token, began);
  await shows(pull, { status: 'in_progress', title: 'At work' });
  const request = { request_id: 'q1', kind: 'question', title: 'Which one, @octocat?', resume: 'x' };
  await events(
    token,
    { seq: 2, type: 'turn_started', step_id: 's1', prompt: 'Go.' },
    { seq: 3, type: 'blocked', step_id: 's1', request },
  );
  await shows(pull, { status: 'completed', conclusion: 'action_required' });
  expect(checksOf(pull)[0]?.summary).toContain('Which one, @\u2060octocat?');
  const check = { check_id: 'c1', name: 'lint', attempt: 1, turn: 1 };
  const lines = Array.from({ length: 60 }, (_, index) => `src/a.ts:${index + 1}:2 - broken`).join('\n');
  const reported = await events(token, {
    seq: 4,
    type: 'check_finished',
    step_id: 's1',
    ...check,
    state: 'failed',
    duration_ms: 1,
    output_tail: lines,
  });
  expect(reported.status, reported.text).toBe(200);
  const finished = await report(token, 'finish-task', {
    turn: 1,
    success: false,
    summary: 'Broken',
    error: { code: 'checks_failed', message: 'lint failed' },
  });
  expect(finished.status, finished.text).toBe(200);
  await shows(pull, { status: 'completed', conclusion: 'failure' });
  expect(checksOf(pull)[0]?.annotations).toHaveLength(50);
  expect(checksOf(pull)[0]?.annotations[0]).toMatchObject({ path: 'src/a.ts', start_line: 1, message: 'broken' });
  // As after a kill between the answer of GitHub and the commit of the service: the change is sent again, without annotations.
  const changes = () =>
    github.requests.filter(({ method, path }) => method === 'PATCH' && /check-runs/.test(path)).length;
  const before = changes();
  await vi.waitFor(async () => {
    await db.query('UPDATE github_comments SET text_hash = NULL WHERE comment_id = $1', [checksOf(pull)[0]?.id]);
    await db.query(
      `UPDATE event_deliveries SET status = 'pending', leased_until = NULL, next_attempt_at = now() WHERE data->>'run_id' = $1`,
      [runId],
    );
    await deliverer.deliver();
    expect(changes()).toBeGreaterThan(before);
  }, 60_000);
  expect(checksOf(pull)[0]?.annotations).toHaveLength(50);
});

test('a lost answer makes no second check run', async () => {
  const pull = newPull();
  await github.comment(pull, ann.account, `@${github.app.slug} review`);
  await shows(pull, { status: 'queued' });
  // As after a kill between the answer of GitHub and the commit of the service.
  await db.query(`UPDATE github_comments SET comment_id = NULL, text_hash = NULL WHERE comment_id = $1`, [
    checksOf(pull)[0]?.id,
  ]);
  const { runToken } = await service.claimRun(await lastRun());
  await events(runToken, began);
  await shows(pull, { status: 'in_progress' });
});

test('the button Re-run reruns the run of its own check, once, and only for a member', async () => {
  const { pull, runId, token } = await started();
  await events(token, began);
  const finished = await report(token, 'finish-task', { turn: 1, success: true, summary: 'Good' });
  expect(finished.status, finished.text).toBe(200);
  await shows(pull, { conclusion: 'success' });
  const stranger = github.account('stranger');
  const viewer = await person('viewer', 'viewer');
  const foreign = await started();
  const ofOtherTeam = await service.request<{ run_id: string }>('POST', '/agent/runs', {
    key: service.otherKey,
    body: { prompt: 'x' },
  });
  const installation = github.install(github.account('elsewhere', 'Organization')).id;
  const before = await count();
  for (const [by, of] of [
    [stranger, {}],
    [viewer.account, {}],
    [ann.account, { app: 1 }],
    [ann.account, { id: 1 }],
    [ann.account, { id: checksOf(foreign.pull)[0]?.id ?? 0 }],
    [ann.account, { run: foreign.runId }],
    [ann.account, { run: ofOtherTeam.body.run_id }],
    [ann.account, { repository: test1.site.id }],
    [ann.account, { installation }],
  ] as const)
    await again(pull, by, of);
  expect(await count()).toBe(before);
  const delivery = await again(pull);
  expect([delivery.status, await count()]).toEqual([202, (before ?? 0) + 1]);
  await github.redeliver(delivery);
  expect(await count()).toBe((before ?? 0) + 1);
  const [made] = await db.query<{ rerun_of: string; executor_uid: string }>(
    'SELECT rerun_of, executor_uid FROM runs ORDER BY id DESC LIMIT 1',
  );
  expect(made).toEqual({ rerun_of: runId, executor_uid: ann.uid });
  await shows(pull, { status: 'queued', externalId: await lastRun() }, 2);
  const gone = await person('gone');
  await service.request('DELETE', `/teams/${test1.teamUid}/members/${gone.uid}`);
  await again(pull, gone.account);
  expect(await count()).toBe((before ?? 0) + 1);
});

test('a run that opens a pull request has its check run on the newest commit that it has pushed there', async () => {
  const issue = github.issue(closed, ann.account);
  await github.comment(issue, ann.account, `@${github.app.slug} fix`);
  const runId = await lastRun();
  const { runToken: key } = await service.claimRun(runId);
  await events(key, began);
  const deliverNow = async () => {
    await db.query(
      `UPDATE event_deliveries SET next_attempt_at = now(), status = 'pending' WHERE leased_until IS NULL`,
    );
    await deliverer.deliver();
  };
  const all = () => github.checkRuns.filter(({ externalId }) => externalId === runId);
  const push = (number: number, to: string) =>
    db.query(
      `INSERT INTO pushed_branches (run_id, execution_id, repository, result, number, branch, from_id, to_id)
       SELECT id, current_execution_id, 'acme/closed', 'pushed', $2, 'fix', '', $3 FROM runs WHERE id = $1`,
      [runId, number, to.repeat(40)],
    );
  for (const head of ['1', '2']) github.issue(closed, ann.account, { head: head.repeat(40) });
  await push(1, '1');
  await report(key, 'report-artifact', {
    artifact_type: 'PULL_REQUEST',
    data: { url: `${github.urls.web}/acme/closed/pull/900`, branch: 'fix' },
  });
  await vi.waitFor(async () => {
    await deliverNow();
    expect(issue.comments.filter(({ byApp, body }) => byApp && /Working/.test(body))).toHaveLength(1);
  }, 60_000);
  expect(all(), 'the run has only reported it').toEqual([]);
  await db.query('UPDATE artifacts SET is_opened = true WHERE run_id = $1', [runId]);
  const shown = (...members: object[]) =>
    vi.waitFor(async () => {
      await deliverNow();
      expect(all()).toMatchObject(members);
    }, 60_000);
  await shown({ headSha: '1'.repeat(40), status: 'in_progress' });
  await push(2, '2');
  const older = { headSha: '1'.repeat(40), status: 'completed', conclusion: 'neutral' };
  await shown(older, { headSha: '2'.repeat(40), status: 'in_progress' });
  await report(key, 'finish-task', { turn: 1, success: true, summary: 'Good' });
  await shown(older, { headSha: '2'.repeat(40), conclusion: 'success' });
});

test('an App without the permission still comments, and the page of the run says once why there is no check run', async () => {
  const other = github.repository(acme, 'without', true);
  test1.installed.permissions = { ...withChecks, checks: 'read' };
  const pull = github.issue(other, ann.account, { head: 'f'.repeat(40) });
  await github.comment(pull, ann.account, `@${github.app.slug} review`);
  const runId = await lastRun();
  const { runToken } = await service.claimRun(runId);
  await events(runToken, began);
  await vi.waitFor(async () => {
    await deliverer.deliver();
    expect(pull.comments.filter(({ byApp, body }) => byApp && /Working/.test(body))).toHaveLength(1);
  }, 60_000);
  expect(checksOf(pull)).toEqual([]);
  await vi.waitFor(async () => {
    await deliverer.deliver();
    expect(
      await db.query(`SELECT payload FROM run_events WHERE run_id = $1 AND event_type = 'github_answered'`, [runId]),
    ).toEqual([{ payload: { tool: 'check_run', reason: expect.stringContaining('permission') } }]);
  }, 60_000);
  test1.installed.permissions = withChecks;
});

test('annotations come from the lines of failed checks that name a file and a line', () => {
  const output =
    './src/a.ts:3:7 - error TS1: <b>\nsrc/b.c(4,2): warning\n../x.ts:1: no\nat x:1\nhttps://a.b:80/ x\n./src/a.ts:3:7 - error TS1: <b>';
  const of = { annotation_level: 'failure', title: 'types' };
  expect(annotationsOf([{ name: 'types', state: 'failed', output }])).toEqual([
    { ...of, path: 'src/a.ts', start_line: 3, end_line: 3, message: 'error TS1: &lt;b>' },
    { ...of, path: 'src/b.c', start_line: 4, end_line: 4, message: 'warning' },
  ]);
  expect(annotationsOf([{ name: 'types', state: 'passed', output }])).toEqual([]);
});
