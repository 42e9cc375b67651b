/**
 * Does jobs of a platform engineer from end to end, with real sandboxes, a stand-in for the model provider and a local code host. Each job
 * counts as done only when its effect is there. Tests in other places do further jobs: bench/harnesses/cases.ts (each coding agent opens a
 * pull request), test/runs/examples.ts (programs in TypeScript and Python), test/services.test.ts (PostgreSQL and Redis),
 * packages/agent/src/run-setup-secrets.test.ts (a token for the setup) and test/dashboard/real-runs.test.ts (a push approved on a phone).
 */
import { createHmac } from 'node:crypto';
import type { RunItem } from '@runyard/contract/runs/runs';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { connectMcp } from '../packages/service/test/mcp.ts';
import { type FakeGitHost, startFakeGitHost } from './fakes/git-host.ts';
import { defaultScript } from './fakes/models/turns.ts';
import { makeFakePullRequestApi } from './fakes/pull-request-api.ts';
import { describeSystemWithModels } from './support/describe-system.ts';
import { runbook } from './support/run-kinds.ts';
import { eventually } from './support/system.ts';

let host: FakeGitHost | undefined;
const pullRequests = makeFakePullRequestApi();
afterAll(async () => await host?.close());

const options = async () => {
  host = await startFakeGitHost({ api: pullRequests.api });
  return { env: { RUNYARD_CODE_HOST_URL: host.template, RUNYARD_WORKER_SLOTS: '4' } };
};

describeSystemWithModels('a platform engineer', options, (system, models) => {
  afterEach(() => models.script(defaultScript));
  const repositories = ['site', 'api', 'docs'];
  beforeAll(async () => {
    for (const repo of repositories)
      await host?.commit('acme', repo, {
        'add.cjs': 'exports.add = (a, b) => a - b;\n',
        'add.test.cjs': "require('assert').equal(require('./add.cjs').add(1, 2), 3);\n",
        'CHANGELOG.md': '# Changes\n',
      });
    await system.call('POST', '/code-hosts', { scope: 'team', kind: 'token', token: 'github_pat_of_the_team' }, 201);
  });

  const environment = async (config: object): Promise<string> =>
    (await system.call<{ uid: string }>('POST', '/agent/environments', { config }, 201)).uid;
  const artifact = async (run: RunItem, name: string): Promise<string> => {
    const found = run.artifacts?.find(({ data }) => 'filename' in data && data.filename === name);
    if (found === undefined || !('artifact_uid' in found.data)) throw new Error(`the run has no artifact ${name}`);
    const { download_url } = (
      await system.call<{ data: { download_url: string } }>('GET', `/agent/artifacts/${found.data.artifact_uid}`)
    ).data;
    return await (await fetch(download_url)).text();
  };
  const shell = (command: string) => ({ toolCalls: [{ name: 'shell', input: { command } }] });

  test('lets the built-in agent fix a failing test, open a pull request, and update the changelog after a message', async () => {
    models.script([
      shell('node add.test.cjs; sed -i "s/a - b/a + b/" add.cjs && node add.test.cjs'),
      shell('git checkout -qb fix && git commit -qam "Fix add" && git push -q origin fix && pull-request --title Fix'),
      shell('git log -1 --stat > ../report.txt && report-artifact ../report.txt'),
      { text: ['Fixed.'] },
      shell('echo "- Fix add" >> CHANGELOG.md && git commit -qam "List the fix" && git push -q origin fix'),
      { text: ['Listed.'] },
    ]);
    const github_repos = [{ owner: 'acme', repo: 'site' }];
    const environment_id = await environment({ name: 'Site', github_repos, working_directory: 'site' });
    const model_id = 'anthropic/claude-sonnet-5-5';
    const config = { environment_id, model_id, idle_timeout_minutes: 5 };
    const runId = await system.createRun('Fix the failing test.', { config });
    const fixed = await system.untilEnded(runId);
    expect(fixed.state, fixed.status_message?.message).toBe('SUCCEEDED');
    expect(pullRequests.pulls).toMatchObject([{ head: 'fix', base: 'main', title: 'Fix' }]);
    expect(await artifact(fixed, 'report.txt')).toContain('Fix add');
    expect(fixed.request_usage?.inference_cost_usd).toBeGreaterThan(0);

    await system.call('POST', `/agent/runs/${runId}/followups`, { message: 'Also update the changelog.' });
    await eventually(
      'changelog',
      async () => (await host?.lastCommit('acme', 'site', 'fix'))?.subject === 'List the fix',
    );
    expect(await host?.read('acme', 'site', 'add.cjs', 'fix')).toContain('a + b');
    expect(await host?.read('acme', 'site', 'CHANGELOG.md', 'fix')).toContain('- Fix add');
    await system.untilEnded(runId);
    const changes = await eventually('changes of both turns', async () => {
      const { repositories: found } = await system.call<{ repositories: { files: { path: string }[] }[] }>(
        'GET',
        `/agent/runs/${runId}/changes`,
      );
      const files = found.flatMap(({ files: each }) => each.map(({ path }) => path));
      return files.includes('CHANGELOG.md') && files;
    });
    expect(changes).toContain('add.cjs');
  });

  test('updates several repositories at night with one child each, and runs only the failed child again', {
    tags: 'long',
  }, async () => {
    const environment_id = await environment({
      name: 'All',
      github_repos: repositories.map((repo) => ({ owner: 'acme', repo })),
    });
    // The first run of the part "docs" fails. Its rerun has another prompt.
    const child = (check: string) =>
      `Update %s.\\n\\n\\140\\140\\140sh\\ncd %s && ${check} && echo 2 > deps && git checkout -qb deps && git add deps && git commit -qm Update && git push -q origin deps\\n\\140\\140\\140\\n`;
    const prompt = [
      '```sh',
      `for repo in ${repositories.join(' ')}; do`,
      `  printf '${child('test %s != docs')}' $repo $repo $repo | child-run start --title "Update $repo" -`,
      'done',
      'child-run await > summary.txt || echo some failed >> summary.txt',
      'report-artifact summary.txt',
      '```',
    ].join('\n');
    const schedule = await system.call<{ id: string }>(
      'POST',
      '/agent/schedules',
      {
        name: 'Nightly',
        cron_schedule: '0 3 * * *',
        timezone: 'Europe/Berlin',
        mode: 'orchestrate',
        prompt,
        agent_config: { ...runbook, environment_id },
      },
      201,
    );
    const next = JSON.stringify(await system.call('GET', `/agent/schedules/${schedule.id}`));
    expect(next).toMatch(/T0[12]:00:00/);
    const { run_id } = await system.call<{ run_id: string }>('POST', `/agent/schedules/${schedule.id}/run`);
    const parent = await system.untilEnded(run_id);
    expect(parent.state, parent.status_message?.message).toBe('SUCCEEDED');
    expect(await artifact(parent, 'summary.txt')).toContain('some failed');
    const below = async (state: string) =>
      (await system.call<{ runs: RunItem[] }>('GET', `/agent/runs?ancestor_run_id=${run_id}&state=${state}`)).runs;
    const failed = await below('FAILED');
    expect(failed.map(({ title }) => title)).toEqual(['Update docs']);
    expect(await host?.branchAt('acme', 'docs', 'deps')).toBe('');
    const rerun = { prompt: (failed[0]?.prompt ?? '').replace('test docs != docs', 'true') };
    const again = await system.call<{ run_id: string }>('POST', `/agent/runs/${failed[0]?.run_id}/rerun`, rerun);
    expect((await system.untilEnded(again.run_id)).state).toBe('SUCCEEDED');
    for (const repo of repositories) expect(await host?.branchAt('acme', repo, 'deps'), repo).not.toBe('');
  });

  test('lets a signed delivery of Sentry start a triage, whose result another program reads as JSON', async () => {
    const secret = 'client-secret-of-the-integration';
    await system.call('PUT', '/secrets/SENTRY', { value: secret, scope: 'team' });
    const { uid: factory } = await system.call<{ uid: string }>('POST', '/factory', { name: 'Operations' }, 201);
    const { uid, url } = await system.call<{ uid: string; url: string }>(
      'POST',
      `/factory/${factory}/webhooks`,
      { name: 'sentry', auth_mode: 'signature', signature_scheme: 'sentry', secret_name: 'SENTRY' },
      201,
    );
    const read = "const { issue } = require('./attachments/event-payload.json').data";
    const write = "require('fs').writeFileSync('result.json', JSON.stringify({ issue: issue.id, severity: 'high' }))";
    const filter = { webhook_ids: [uid], payload: { data: { issue: { level: ['error'] } } } };
    const automation = {
      name: 'Triage',
      prompt: `\`\`\`sh\nnode -e "${read}; ${write}" && report-artifact result.json\n\`\`\``,
      config: runbook,
      triggers: [{ provider: 'webhook', event: 'received', filter }],
    };
    await system.call('POST', `/factory/${factory}/automations`, automation, 201);
    const deliver = async (level: string) => {
      const body = JSON.stringify({ action: 'created', data: { issue: { id: level, level } } });
      const headers = {
        'sentry-hook-signature': createHmac('sha256', secret).update(body).digest('hex'),
        'request-id': `issue-${level}`,
      };
      expect((await fetch(url, { method: 'POST', body, headers })).status).toBe(202);
    };
    await deliver('warning');
    await deliver('error');
    const runId = await eventually('triage', async () => {
      const { deliveries } = await system.call<{ deliveries: { runs?: string[] }[] }>(
        'GET',
        `/factory/${factory}/webhooks/${uid}/deliveries`,
      );
      const started = deliveries.flatMap(({ runs = [] }) => runs);
      return deliveries.length === 2 && started.length === 1 && started[0];
    });
    const run = await system.untilEnded(runId);
    expect(JSON.parse(await artifact(run, 'result.json'))).toEqual({ issue: 'error', severity: 'high' });
  });

  test('keeps a factory as files: plan, apply, drift, and back to the files of before', { tags: 'long' }, async () => {
    await system.call('PUT', '/secrets/ALERTS', { value: 'long-secret-of-alerts', scope: 'team' });
    const { uid: factory } = await system.call<{ uid: string }>('POST', '/factory', { name: 'Shipping' }, 201);
    const automation = (cron: string) =>
      `---\ntriggers:\n  - provider: schedule\n    event: cron_fired\n    schedule:\n      cron: "${cron}"\n      timezone: Europe/Berlin\n---\n\nTidy up.\n`;
    const files = (cron: string) =>
      Object.entries({
        'factory.yaml': 'schemaVersion: v1alpha1\nname: Shipping\nrepositories: []\nagentDefaults:\n  model: runbook\n',
        'agents/foreman/agent.md': '---\nagentType: FOREMAN\n---\n\nDivide the work.\n',
        'automations/tidy/automation.md': automation(cron),
        'webhooks/alerts.yaml': 'secretName: ALERTS\n',
      }).map(([path, content]) => ({ path, content }));
    interface Applied {
      readonly version: number;
      readonly changes: readonly { readonly action: string; readonly kind: string }[];
      readonly drift: readonly unknown[];
    }
    const apply = (cron: string, dry_run = false) =>
      system.call<Applied>('PUT', `/factory/${factory}/definition`, { files: files(cron), dry_run });
    expect((await apply('0 3 * * *', true)).changes).toHaveLength(4);
    expect((await apply('0 3 * * *')).version).toBe(1);
    expect((await apply('0 4 * * *')).changes).toMatchObject([{ action: 'change', kind: 'automation' }]);
    const { webhooks } = await system.call<{ webhooks: { uid: string; enabled: boolean }[] }>(
      'GET',
      `/factory/${factory}/webhooks`,
    );
    await system.call('POST', `/factory/${factory}/webhooks/${webhooks[0]?.uid}/disable`);
    const back = await apply('0 3 * * *');
    expect(back).toMatchObject({ version: 3, changes: [{ kind: 'automation' }], drift: [{ kind: 'webhook' }] });
    expect(await system.call('GET', `/factory/${factory}/webhooks`)).toMatchObject({ webhooks: [{ enabled: true }] });
    const { automations } = await system.call<{ automations: object[] }>('GET', `/factory/${factory}/automations`);
    expect(automations).toMatchObject([{ triggers: [{ schedule: { cron: '0 3 * * *' } }] }]);
  });

  test('lets an MCP client start a run, wait for its question, answer it and read the result', async () => {
    models.script([
      { toolCalls: [{ name: 'ask_user', input: { question: 'Which colour?' } }] },
      { text: ['It is blue.'] },
    ]);
    const mcp = await connectMcp(`${system.baseUrl()}/mcp`, system.key);
    const config = { model_id: 'anthropic/claude-sonnet-5-5' };
    const { run_id } = await mcp.json<{ run_id: string }>('start_run', { prompt: 'Paint it.', config });
    const waited = await mcp.json<RunItem>('wait_for_run', { run_id });
    expect(waited).toMatchObject({ state: 'BLOCKED', blocked_on: { title: 'Which colour?' } });
    await mcp.json('answer_request', { run_id, request_id: waited.blocked_on?.request_id, message: 'blue' });
    expect(await mcp.json('wait_for_run', { run_id })).toMatchObject({ state: 'SUCCEEDED' });
    const sent = JSON.stringify(models.requests.at(-1)?.body);
    expect(sent).toContain('blue');
    expect((await mcp.call('get_conversation', { run_id })).texts.at(-1)).toContain('It is blue.');
    await mcp.client.close();
  });
});
