import type { Factory } from '@runyard/contract/factories/factories';
import type { DispatchResponse } from '@runyard/contract/factories/factory-definitions';
import type { RunItem } from '@runyard/contract/runs/runs';
import { expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();
const { body: factory } = await service.request<Factory>('POST', '/factory', {
  body: { name: 'Billing', agent_defaults: { model_id: 'runbook', base_prompt: 'Be careful.' } },
});
const path = `/factory/${factory.uid}/runs`;
const dispatch = (body: object, more: object = {}) =>
  service.request<DispatchResponse>('POST', path, { body, ...more });

test('a new factory has a foreman', () => {
  expect(factory.agents).toEqual([{ name: 'foreman', agent_type: 'FOREMAN', prompt: '', config: {} }]);
});

test("a dispatch starts a run with the configuration of the factory's foreman, the ticket of the dispatch and the factory's uid", async () => {
  const answer = await dispatch({
    prompt: 'Fix it.',
    title: 'Fix',
    ticket_ref: 'BILL-12',
    ticket_url: 'https://tickets.example.com/12',
  });
  expect(answer.body).toEqual({
    run_id: expect.any(String),
    run_url: `${service.baseUrl}/runs/${answer.body.run_id}`,
    state: 'QUEUED',
    factory_uid: factory.uid,
    foreman_agent: 'foreman',
    ticket_ref: 'BILL-12',
  });
  const run = await service.request<RunItem>('GET', `/agent/runs/${answer.body.run_id}`);
  expect(run.body).toMatchObject({
    title: 'Fix',
    prompt: 'Fix it.\n\nTicket: BILL-12 https://tickets.example.com/12',
    agent_config: { model_id: 'runbook', base_prompt: 'Be careful.' },
    factory_uid: factory.uid,
    metadata: {
      factory_uid: factory.uid,
      ticket_ref: 'BILL-12',
      ticket_id: 'BILL-12',
      ticket_url: 'https://tickets.example.com/12',
    },
  });
  expect(run.body).not.toHaveProperty('submitted_prompt');
  for (const filter of [
    `factory_uid=${factory.uid}`,
    `factory_uid=x&factory_uid=${factory.uid}`,
    'factory_only=true',
  ]) {
    const listed = await service.request<{ runs: RunItem[] }>('GET', `/agent/runs?${filter}`);
    expect(listed.body.runs.map(({ run_id }) => run_id)).toEqual([answer.body.run_id]);
  }
});

test.each([
  ['linear:BILL-12', { ticket_source: 'linear', ticket_id: 'BILL-12' }],
  ['jira:a:b ', { ticket_source: 'jira', ticket_id: 'a:b' }],
  ['see: BILL', { ticket_source: 'see', ticket_id: 'BILL' }],
  ['two words: BILL', { ticket_id: 'two words: BILL' }],
  ['linear: ', { ticket_id: 'linear:' }],
  [undefined, { ticket_source: 'adhoc', ticket_id: expect.stringMatching(/^\w{22}$/) }],
])('the ticket %j is stamped onto the run and answered', async (ticket_ref, stamped) => {
  const { body } = await dispatch({ prompt: 'a', ...(ticket_ref === undefined ? {} : { ticket_ref }) });
  const run = await service.request<RunItem>('GET', `/agent/runs/${body.run_id}`);
  const { factory_uid, ticket_ref: kept, ...metadata } = run.body.metadata ?? {};
  expect(metadata).toEqual(stamped);
  expect(kept).toBe(ticket_ref);
  expect(body.ticket_ref).toBe(ticket_ref?.trim() ?? `adhoc:${metadata.ticket_id}`);
  expect(run.body.prompt).toBe(ticket_ref === undefined ? 'a' : `a\n\nTicket: ${ticket_ref}`);
});

test('two dispatches with the same Idempotency-Key start one run', async () => {
  const headers = { 'idempotency-key': 'd-1' };
  const [a, b] = await Promise.all([dispatch({ prompt: 'a' }, { headers }), dispatch({ prompt: 'a' }, { headers })]);
  expect(a.body).toEqual(b.body);
  expect((await dispatch({ prompt: 'b' }, { headers })).status).toBe(409);
});

test.each([
  ['prompt', { prompt: ' ' }],
  ['ticket_ref', { prompt: 'a', ticket_ref: 'é'.repeat(129) }],
  ['ticket_url', { prompt: 'a', ticket_url: 'javascript:alert(1)' }],
])('a wrong %s is refused with its name', async (member, body) => {
  const problem = await service.problem(400, 'POST', path, { body });
  expect(problem.errors?.[0]?.path).toBe(member);
});

test('a dispatch needs the right to start runs in the team of the factory', async () => {
  const status = async (key: string) => (await dispatch({ prompt: 'a' }, { key })).status;
  expect(await status(await service.newKey({ role: 'viewer' }))).toBe(403);
  expect(await status(service.otherKey)).toBe(404);
  expect(await status((await service.startExecution()).runToken)).toBe(401);
  expect(await status(await service.newKey({ kind: 'agent' }))).toBe(200);
});
