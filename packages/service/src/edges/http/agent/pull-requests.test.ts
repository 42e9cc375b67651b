import { describe, expect, it } from 'vitest';
import { startFakeGitHost } from '../../../../../../test/fakes/git-host.ts';
import { makeFakePullRequestApi } from '../../../../../../test/fakes/pull-request-api.ts';
import { closeAtEnd } from '../../../../../../test/support/close-at-end.ts';
import { openTestService, type TestService } from '../../../../test/service.ts';
import { createChannelSubscription, deleteChannelSubscription } from '../../../runs/subscriptions/channels.ts';

const token = 'ghp_of-the-team-0123456789';
const fake = makeFakePullRequestApi(token);
const host = closeAtEnd(await startFakeGitHost({ token, api: fake.api }));
await host.commit('acme', 'site', { 'README.md': 'first' });
const gitHub = await openTestService({ env: { RUNYARD_CODE_HOST_URL: host.template } });
const gitLab = await openTestService({
  env: { RUNYARD_CODE_HOST_URL: host.template, RUNYARD_CODE_HOST_API_URL: `${host.url}/api/v4/` },
});
for (const service of [gitHub, gitLab])
  await service.request('POST', '/code-hosts', { body: { scope: 'team', kind: 'token', token } });

async function startRun(service: TestService) {
  const environment = await service.request<{ uid: string }>('POST', '/agent/environments', {
    body: { config: { name: 'E', github_repos: [{ owner: 'acme', repo: 'site' }] } },
  });
  const runId = await service.newRun({ config: { environment_id: environment.body.uid } });
  const { runToken } = await service.claimRun(runId);
  const open = (head: string, more: object = {}) =>
    service.request<Record<string, unknown>>('POST', '/harness-support/pull-requests', {
      key: runToken,
      body: { repository: { owner: 'acme', repo: 'site' }, head, title: 'T', ...more },
    });
  return { runId, runToken, open };
}

const artifactsOf = async (service: TestService, runId: string) =>
  (await service.ok<{ artifacts: { artifact_type: string; data: object }[] }>('GET', `/agent/runs/${runId}`)).artifacts;

describe.each([
  ['GitHub', gitHub],
  ['GitLab', gitLab],
] as const)('a pull request at %s', (name, service) => {
  it('is opened only once, into the default branch, and becomes an artifact of the run', async () => {
    const { runId, open } = await startRun(service);
    const first = await open(`${name}/one`, { body: 'Why.', draft: true });
    expect(first.status, first.text).toBe(200);
    const { url } = first.body;
    expect(first.body).toMatchObject({ branch: `${name}/one`, is_new: true });
    expect(fake.pulls.at(-1)).toMatchObject({ base: 'main', body: 'Why.', url });
    expect(fake.pulls.at(-1)?.draft || fake.pulls.at(-1)?.title.startsWith('Draft: ')).toBe(true);
    const again = await open(`${name}/one`, { base: 'main' });
    expect(again.body).toEqual({ ...first.body, is_new: false });
    expect(await artifactsOf(service, runId)).toMatchObject([
      { artifact_type: 'PULL_REQUEST', data: { url, branch: `${name}/one` } },
    ]);
    const audit = await service.request('GET', '/audit-log?action=pull_request.create');
    expect(audit.text).toContain(runId);
    expect(audit.text.split('pull_request.create')).toHaveLength(2);
  });

  it('is shown by the channels that follow the run', async () => {
    const { runId, open } = await startRun(service);
    const { db, vault } = service.deps;
    const [run] = await db.query<{ team_id: string }>('SELECT team_id FROM runs WHERE id = $1', [runId]);
    const of = { teamId: run?.team_id ?? '', channel: 'github', metadata: {} } as const;
    const subscription = await createChannelSubscription(db, vault, of);
    expect((await open(`${name}/shown`)).status).toBe(200);
    const deliveries = await db.query('SELECT event, data FROM event_deliveries WHERE subscription_id = $1', [
      subscription,
    ]);
    expect(deliveries).toEqual([{ event: 'notice', data: { run_id: runId } }]);
    await deleteChannelSubscription(db, subscription);
  });

  it('that another request has opened meanwhile is returned', async () => {
    const { open } = await startRun(service);
    const message = 'A pull request already exists for acme:raced.';
    fake.next = { status: name === 'GitHub' ? 422 : 409, json: { message }, opens: true };
    const answer = await open(`${name}/raced`);
    expect(answer.body, answer.text).toMatchObject({ url: fake.pulls.at(-1)?.url, is_new: false });
  });

  it('from a branch that does not exist is refused', async () => {
    const { open } = await startRun(service);
    fake.missing.add('missing');
    const answer = await open('missing');
    expect(answer.status).toBe(404);
    expect(answer.text).toContain('acme/site has no branch missing at the code host. Push it first.');
  });

  it.each([
    [403, 'not_authorized', 403, 'The stored credential may not open pull requests in acme/site'],
    [404, 'resource_not_found', 404, 'hides it from the stored credential'],
    [301, 'resource_not_found', 404, 'was moved or renamed'],
    [400, 'conflict', 409, 'title is odd'],
    [502, 'resource_unavailable', 503, 'answered 502'],
  ])('is refused if the host answers %i', async (status, code, expected, text) => {
    const { runId, open } = await startRun(service);
    fake.next = { status, json: { message: ['title is odd'] } };
    const answer = await open(`${name}/refused`);
    expect([answer.status, answer.body.error_code]).toEqual([expected, code]);
    expect(answer.text).toContain(text);
    expect(answer.text).not.toContain(token);
    expect((await artifactsOf(service, runId)) ?? []).toEqual([]);
  });
});

describe('a pull request', () => {
  it('that is opened while its run is cancelled is in the audit log', async () => {
    const { runId, open } = await startRun(gitHub);
    fake.before = () => gitHub.request('POST', `/agent/runs/${runId}/cancel`);
    expect((await open('cancelled')).status).toBe(409);
    expect(fake.pulls.at(-1)?.head).toBe('cancelled');
    const audit = await gitHub.request('GET', '/audit-log?action=pull_request.create');
    expect(audit.text).toContain(runId);
  });

  it("from a branch with the same name in a fork is not treated as the run's pull request", async () => {
    const { open } = await startRun(gitHub);
    const url = 'https://host.example/acme/site/pull/stranger';
    fake.pulls.push({ head: 'fix', base: 'main', title: 'T', body: '', draft: false, url, from: 'stranger/site' });
    fake.next = { status: 201, json: { html_url: 'https://host.example/acme/site/pull/own' } };
    expect((await open('fix')).body).toMatchObject({ url: 'https://host.example/acme/site/pull/own', is_new: true });
  });

  it('without commits is refused', async () => {
    const { open } = await startRun(gitHub);
    fake.empty.add('empty');
    const answer = await open('empty');
    expect(answer.status).toBe(409);
    expect(answer.text).toContain('No commits between main and empty');
  });

  it('is refused for other repositories, without a credential, above the limit and after the end of the run', async () => {
    const { runId, open } = await startRun(gitHub);
    expect((await open('x', { repository: { owner: 'acme', repo: 'other' } })).status).toBe(404);
    expect((await open('bad branch')).status).toBe(400);
    expect((await open('x', { title: '' })).status).toBe(400);
    const before = fake.pulls.length;
    for (let index = 0; index < 19; index += 1) expect((await open(`many-${index}`)).status).toBe(200);
    const atOnce = await Promise.all(Array.from({ length: 5 }, (_, index) => open(`at-once-${index}`)));
    expect(atOnce.filter(({ status }) => status === 200)).toHaveLength(1);
    for (const { status } of atOnce) expect([200, 409, 429]).toContain(status);
    expect((await open('many-20')).text).toContain('as many as a run can open');
    expect(fake.pulls).toHaveLength(before + 20);
    const [credential] = (await gitHub.request<{ credentials: { id: string }[] }>('GET', '/code-hosts')).body
      .credentials;
    const other = await startRun(gitHub);
    await gitHub.request('DELETE', `/code-hosts/${credential?.id}`);
    const without = await other.open('x');
    expect([without.status, without.text]).toEqual([
      403,
      expect.stringContaining('store it with bin/runyard code-hosts add'),
    ]);
    await gitHub.request('POST', '/code-hosts', { body: { scope: 'team', kind: 'token', token: 'old' } });
    const refused = await other.open('x');
    expect([refused.status, refused.text]).toEqual([403, expect.stringContaining('refuses the stored credential')]);
    await gitHub.request('POST', `/agent/runs/${runId}/cancel`);
    expect((await open('late')).status).toBe(409);
  });
});
