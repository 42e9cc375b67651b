/** Tests the rights of a run token while its execution is stopping. */

import { routes } from '@runyard/contract/routes';
import type { Route } from '@runyard/contract/wire/route';
import { describe, expect, test } from 'vitest';
import { startFakeModels } from '../../../../../../test/fakes/models.ts';
import { closeAtEnd } from '../../../../../../test/support/close-at-end.ts';
import { makeOwnThings } from '../../../../test/own-things.ts';
import { openTestService } from '../../../../test/service.ts';
import { stalledRequests } from '../../../../test/stalled.ts';

const models = closeAtEnd(await startFakeModels());
const service = await openTestService({ env: models.env });
const { stall } = stalledRequests(service);
const { db } = service.deps;
const at = '2026-01-02T03:04:05.000Z';

const stopping = await makeOwnThings(service);
await service.request('POST', `/agent/runs/${stopping.own.runId}/cancel`);

const routesOf = (run: 'at_work' | 'until_end') =>
  (Object.entries(routes) as [string, Route][]).filter(([, { allow }]) => 'run' in allow && allow.run === run);
const reports = routesOf('until_end');
const work = routesOf('at_work');

const count = async (table: 'artifacts' | 'runs'): Promise<number> =>
  Number((await db.query<{ n: string }>(`SELECT count(*) AS n FROM ${table}`))[0]?.n);

test('the only requests of a stopping execution that are answered as usual are its last reports, its inbox and the storage of its state', () => {
  expect(reports.map(([name]) => name).sort()).toEqual([
    'finishTask',
    'keepMemory',
    'keepWorkspace',
    'readInbox',
    'reportChanges',
    'reportEvents',
    'reportShutdown',
    'uploadSnapshot',
  ]);
});

test.each(work)('%s answers 409 and does nothing', async (name, route) => {
  const { path, options } = stopping.requestOf(name, route);
  const before = [await count('artifacts'), await count('runs')];
  const problem = await service.problem(409, route.method, path, { ...options, key: stopping.own.runToken });
  expect(problem).toMatchObject({ error_code: 'conflict', detail: expect.stringContaining('stopping') });
  expect([await count('artifacts'), await count('runs')]).toEqual(before);
});

test.each(reports)('%s answers 200', async (name, route) => {
  const { path, options } = stopping.requestOf(name, route);
  await service.ok(route.method, path, { ...options, key: stopping.own.runToken });
});

test('an artifact that is authenticated before the cancel and arrives after it gets 409 and is not stored', async () => {
  const { runId, runToken } = await service.startExecution();
  const body = JSON.stringify({ artifact_type: 'PLAN', data: { content: 'x' } });
  const before = await count('artifacts');
  const stalled = await stall('POST', '/harness-support/report-artifact', runToken, body);
  await service.request('POST', `/agent/runs/${runId}/cancel`);
  expect((await stalled.goOn()).status).toBe(409);
  expect(await count('artifacts')).toBe(before);
});

test('a follow-up that a stopping agent reports as taken still waits for the next sandbox', async () => {
  const { runId, runToken } = await service.startExecution();
  const send = (events: object[]) => service.report(runToken, events);
  await send([{ seq: 1, occurred_at: at, type: 'agent_started', harness: 'oz', model_id: 'runbook' }]);
  const body = await service.ok<{ followup_id: string }>('POST', `/agent/runs/${runId}/followups`, {
    body: { message: 'And this.' },
  });
  await service.request('POST', `/agent/runs/${runId}/cancel`);
  const taken = { seq: 2, occurred_at: at, type: 'follow_up_taken', follow_up_id: body.followup_id };
  expect((await send([taken])).body).toEqual({ acknowledged: 2 });
  const rows = await db.query('SELECT execution_id FROM followups WHERE run_id = $1', [runId]);
  expect(rows).toEqual([{ execution_id: null }]);
});

describe('the gateway', () => {
  const config = { model_id: 'anthropic/claude-opus-5-5' };
  const path = '/gateway/anthropic/v1/messages';
  const body = JSON.stringify({
    model: 'claude-opus-5-5',
    max_tokens: 9,
    messages: [{ role: 'user', content: 'Hello.' }],
  });
  const headers = { 'content-type': 'application/json', 'anthropic-version': '2023-06-01' };
  const send = (key: string) => service.request('POST', path, { key, raw: body, headers });
  const git = '/gateway/git/o/r.git/info/refs?service=git-upload-pack';

  test('refuses models and repositories with 401', async () => {
    const { runId, runToken: key } = await service.startExecution({ config });
    expect((await send(key)).status).toBe(200);
    expect((await service.request('GET', git, { key })).status).toBe(403);
    const before = models.requests.length;
    await service.request('POST', `/agent/runs/${runId}/cancel`);
    expect((await send(key)).status).toBe(401);
    expect((await service.request('GET', git, { key })).status).toBe(401);
    expect(models.requests).toHaveLength(before);
  });

  test('does not forward a request whose body arrives after the cancel', async () => {
    const { runId, runToken: key } = await service.startExecution({ config });
    const before = models.requests.length;
    const stalled = await stall('POST', path, key, body);
    await service.request('POST', `/agent/runs/${runId}/cancel`);
    expect((await stalled.goOn()).status).toBe(401);
    expect(models.requests).toHaveLength(before);
  });
});
