/** Tests that the service refuses changes outside of the sandbox in a turn with the mode `plan`. */
import { expect, it } from 'vitest';
import { openPushes } from '../../../../test/pushes.ts';

const { service, clone, branchAt } = await openPushes();

it('a turn with the mode plan cannot push, open pull requests or start children that change something, and the next turn can', async () => {
  const run = await clone({}, { child_runs: { enabled: true } }, { mode: 'plan' });
  const { runId, runToken, git, commit } = run;
  let seq = 0;
  const send = async (method: 'GET' | 'POST', path: string, body?: object) =>
    await service.request<Record<string, unknown>>(method, path, { key: runToken, ...(body ? { body } : {}) });
  const report = (event: object) =>
    send('POST', '/harness-support/events', {
      events: [{ seq: ++seq, occurred_at: '2026-01-02T03:04:05.000Z', ...event }],
    });
  await report({ type: 'agent_started', harness: 'oz', model_id: 'runbook' });
  await commit('planned');
  const push = () => git('push', 'origin', 'HEAD:planned');
  expect((await push()).text).toContain('this turn has the mode plan, in which nothing may change');
  expect(await branchAt('planned')).toBe('');
  const pullRequest = { repository: { owner: 'acme', repo: 'site' }, head: 'planned', title: 'Planned' };
  const opened = await send('POST', '/harness-support/pull-requests', pullRequest);
  expect([opened.status, opened.text]).toEqual([403, expect.stringContaining('mode plan')]);
  const child = await send('POST', '/harness-support/child-runs', { prompt: 'Write.', mode: 'normal' });
  expect(child.status, child.text).toBe(200);
  const [row] = await service.deps.db.query('SELECT mode FROM runs WHERE id = $1', [child.body.run_id]);
  expect(row).toEqual({ mode: 'plan' });

  await report({ type: 'blocked', step_id: 's1', request: { request_id: 'q1', kind: 'question', title: 'Which?' } });
  const answer = (body: object) =>
    service.request<{ followup_id: string }>('POST', `/agent/runs/${runId}/followups`, { body });
  const take = (id: unknown) => report({ type: 'follow_up_taken', follow_up_id: id });
  await take((await answer({ message: 'The first.' })).body.followup_id);
  expect((await push()).text, 'an answer continues the plan').toContain('mode plan');
  const { body } = await answer({ message: 'Do it.' });
  expect((await push()).text, 'a message that waits changes no mode').toContain('mode plan');
  await take(body.followup_id);
  expect((await push()).code).toBe(0);
  expect(await branchAt('planned')).not.toBe('');
});
