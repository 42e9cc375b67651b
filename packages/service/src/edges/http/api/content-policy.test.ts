import { once } from 'node:events';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { startFakeGitHost } from '../../../../../../test/fakes/git-host.ts';
import { closeAtEnd } from '../../../../../../test/support/close-at-end.ts';
import { testChildRuns } from '../../../../test/child-runs.ts';
import { testSchedules } from '../../../../test/schedules.ts';
import { openTestService } from '../../../../test/service.ts';
import { fireDueSchedules } from '../../../triggers/starts/times/fire.ts';

const allow: RequestListener = (_request, response) => void response.end('{"allowed":true}');
let classify = allow;
const classifier = createServer((request, response) => classify(request, response)).listen(0, '127.0.0.1');
await once(classifier, 'listening');
afterAll(() => classifier.close().closeAllConnections());
afterEach(() => {
  classify = allow;
});

const file = path.join(await mkdtemp(path.join(tmpdir(), 'runyard-policy-')), 'policy.json');
await writeFile(
  file,
  JSON.stringify({
    rules: [{ name: 'no mining', pattern: 'xmrig' }],
    classifier: { url: `http://127.0.0.1:${(classifier.address() as AddressInfo).port}/`, timeout_seconds: 1 },
  }),
);
const host = closeAtEnd(await startFakeGitHost());
const env = { RUNYARD_CONTENT_POLICY_FILE: file, RUNYARD_CODE_HOST_URL: host.template };
const service = await openTestService({ env });
const { orchestrator, begin, startChild } = testChildRuns(service);
const bad = 'Install xmrig.';
const breaks = (answer: { status: number; body: unknown }) =>
  expect(answer).toMatchObject({
    status: 403,
    body: { error_code: 'content_policy_violation', retryable: false, detail: expect.stringContaining('no mining') },
  });
const resolve = (key: string) => service.request('POST', '/harness-support/resolve-prompt', { key, body: {} });
const read = async (runId: string) => await service.ok('GET', `/agent/runs/${runId}`);
const failed = {
  state: 'FAILED',
  status_message: { error_code: 'content_policy_violation', message: expect.stringContaining('no mining') },
};

describe('the content policy answers 403', () => {
  test('to a create with a refused prompt or base prompt, and to a rerun with a refused prompt', async () => {
    breaks(await service.request('POST', '/agent/runs', { body: { prompt: bad } }));
    breaks(await service.request('POST', '/agent/runs', { body: { prompt: 'a', config: { base_prompt: bad } } }));
    const runId = await service.newRun();
    breaks(await service.request('POST', `/agent/runs/${runId}/rerun`, { body: { prompt: bad } }));
  });

  test('to a follow-up, a child run and a message between runs', async () => {
    const lead = await orchestrator();
    breaks(await service.request('POST', `/agent/runs/${lead.runId}/followups`, { body: { message: bad } }));
    breaks(await service.request('POST', '/harness-support/child-runs', { key: lead.runToken, body: { prompt: bad } }));
    const child = await begin(await startChild(lead.runToken));
    const body = { run_id: child.runId, message: bad };
    breaks(await service.request('POST', '/harness-support/messages', { key: lead.runToken, body }));
    const followups = await service.deps.db.query('SELECT FROM followups WHERE run_id = $1', [child.runId]);
    expect(followups).toEqual([]);
  });

  test.each<[string, object]>([
    ['setup command', { setup_commands: ['make', 'curl x | xmrig'] }],
    ['command of a service', { services: [{ name: 's', command: 'xmrig', port: 1 }] }],
    ['check of a service', { services: [{ name: 's', command: 'true', ready: 'xmrig' }] }],
  ])('to the create and the replacement of an environment with a refused %s', async (_, members) => {
    const config = { name: 'E', ...members };
    breaks(await service.request('POST', '/agent/environments', { body: { config } }));
    const createdEnvironment = await service.request<{ uid: string }>('POST', '/agent/environments', {
      body: { config: { name: 'E' } },
    });
    breaks(await service.request('PUT', `/agent/environments/${createdEnvironment.body.uid}`, { body: { config } }));
  });

  test('to the create and the replacement of a schedule with a refused prompt', async () => {
    const schedule = { name: 'S', cron_schedule: '@yearly', prompt: 'a', enabled: true };
    breaks(await service.request('POST', '/agent/schedules', { body: { ...schedule, prompt: bad } }));
    const createdSchedule = await service.request<{ id: string }>('POST', '/agent/schedules', { body: schedule });
    const body = { ...schedule, prompt: bad };
    breaks(await service.request('PUT', `/agent/schedules/${createdSchedule.body.id}`, { body }));
  });
});

test('the classifier gets the texts for the agent, but not the values of secrets', async () => {
  await service.request('PUT', '/secrets/TOKEN', { body: { value: 'xmrig-planted-value', scope: 'team' } });
  const prompt = 'Log in with xmrig-planted-value.';
  breaks(await service.request('POST', '/agent/runs', { body: { prompt } }));
  const secrets = [{ name: 'TOKEN' }];
  const seen: string[] = [];
  classify = async (request, response) => {
    seen.push(await text(request));
    response.end('{"allowed":true}');
  };
  await service.ok<{ run_id: string }>('POST', '/agent/runs', { body: { prompt, config: { secrets } } });
  expect(seen.join('')).toContain('Log in with');
  expect(seen.join('')).not.toContain('planted');
  const schedule = { name: 'S', cron_schedule: '@yearly', prompt, agent_config: { secrets }, enabled: true };
  expect((await service.request('POST', '/agent/schedules', { body: schedule })).status).toBe(201);
  expect(seen.join('')).not.toContain('planted');
});

describe('a run that was accepted becomes FAILED with content_policy_violation', () => {
  test('when the run begins, if a schedule fired with a prompt that the policy now refuses', async () => {
    const { create, makeDue, fires } = testSchedules(service);
    const schedule = await create();
    await service.deps.db.query('UPDATE schedules SET prompt = $2 WHERE id = $1', [schedule.id, bad]);
    await makeDue(schedule.id);
    await fireDueSchedules(service.deps);
    const [fire] = await fires(schedule.id);
    const { runToken, runId } = await service.claimRun(fire?.run_id ?? '');
    expect((await resolve(runToken)).status).toBe(401);
    expect(await read(runId)).toMatchObject(failed);
  });

  test('when the run begins, if its skill has a text that the policy refuses', async () => {
    const text = `---\nname: mine\ndescription: About coins.\n---\n${bad}\n`;
    await host.commit('acme', 'skills', { 'skills/mine/SKILL.md': text });
    const { runToken, runId } = await service.startExecution({ skill: 'acme/skills:mine' });
    expect((await resolve(runToken)).status).toBe(401);
    expect(await read(runId)).toMatchObject(failed);
  });

  test('when the run begins, if its environment has a setup command that the policy now refuses', async () => {
    const { db } = service.deps;
    const createdEnvironment = await service.request<{ uid: string }>('POST', '/agent/environments', {
      body: { config: { name: 'E' } },
    });
    const config = JSON.stringify({ name: 'E', setup_commands: ['xmrig'] });
    await db.query('UPDATE environments SET config = $2 WHERE uid = $1', [createdEnvironment.body.uid, config]);
    const { runToken, runId } = await service.startExecution({
      config: { environment_id: createdEnvironment.body.uid },
    });
    expect((await resolve(runToken)).status).toBe(401);
    expect(await read(runId)).toMatchObject(failed);
  });
});

describe('if the classifier does not answer', () => {
  test('a create gets a retryable 503, and uses no connection of the database', async () => {
    classify = () => {};
    const asked = service.request('POST', '/agent/runs', { body: { prompt: 'planted-secret' } });
    const busy = await service.deps.db.query<{ count: number }>(
      `SELECT count(*)::int AS count FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in%'`,
    );
    expect(busy).toEqual([{ count: 0 }]);
    expect(await asked).toMatchObject({ status: 503, body: { error_code: 'resource_unavailable', retryable: true } });
    expect((await asked).headers.get('retry-after')).toBe('5');
    expect(service.logged.join('')).not.toContain('planted');
  });

  test('the agent of an accepted run does not get its task yet, and gets it later with a repeated request', async () => {
    const { runToken } = await service.startExecution();
    classify = (_request, response) => void response.writeHead(500).end();
    expect(await resolve(runToken)).toMatchObject({ status: 429, body: { retryable: true } });
    classify = allow;
    expect((await resolve(runToken)).status).toBe(200);
  });
});
