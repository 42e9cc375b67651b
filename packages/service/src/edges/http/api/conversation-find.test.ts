import type { AgentEventBody } from '@runyard/contract/runs/agent-events';
import { RunMatches } from '@runyard/contract/runs/conversation-find';
import { expect, test } from 'vitest';
import { newPerson, newTeam, teamUidOf } from '../../../../test/people.ts';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();
const at = '2026-11-21T10:00:00Z';

/** Starts a run whose agent reports the events. */
async function runWith(bodies: readonly AgentEventBody[]) {
  const run = await service.startExecution();
  for (let sent = 0; sent < bodies.length; sent += 1000) {
    const events = bodies.slice(sent, sent + 1000).map((body, n) => ({ seq: sent + n + 1, occurred_at: at, ...body }));
    await service.ok('POST', '/harness-support/events', { key: run.runToken, body: { events } });
  }
  return run;
}

const ask = async (runId: string, query: Record<string, string | number>, key = service.key) =>
  await service.request(
    'GET',
    `/agent/runs/${runId}/conversation/find?${new URLSearchParams(query as Record<string, string>)}`,
    { key },
  );

/** Finds messages. Returns their numbers and excerpts. */
async function find(runId: string, query: Record<string, string | number>) {
  const { status, body, text } = await ask(runId, query);
  expect(status, text).toBe(200);
  const { count, matches } = RunMatches.parse(body);
  return { count, seqs: matches.map(({ seq }) => seq), excerpts: matches.map(({ excerpt }) => excerpt) };
}

const say = (message_id: string, text: string): AgentEventBody => ({
  type: 'text',
  step_id: 's',
  message_id,
  role: 'assistant',
  text,
});
const run = (action_id: string, input: unknown): AgentEventBody => ({
  type: 'action',
  step_id: 's',
  action_id,
  category: 'command',
  name: 'shell',
  input,
});
const begun: AgentEventBody = { type: 'agent_started', harness: 'oz', model_id: 'runbook' };
const turn = (prompt: string, step_id = 's'): AgentEventBody => ({ type: 'turn_started', step_id, prompt });

const story: AgentEventBody[] = [
  begun,
  turn('Round the TAX of each invoice'),
  say('m', 'I look at the ta'),
  say('m', 'x code. Größe 100%_done'),
  run('a', { command: 'printf "tax\\n"', cwd: '/workspace' }),
  { type: 'action_output', action_id: 'a', text: 'rounding fai' },
  { type: 'action_output', action_id: 'a', text: 'led' },
  { type: 'action_result', action_id: 'a', state: 'completed', exit_code: 1 },
  { type: 'notice', step_id: 's', name: 'connection_denied', data: { host: 'registry.test' } },
  turn('Now commit', 't'),
];

test('finds a text in all messages, across the pieces of a message and in upper or lower case', async () => {
  const { runId } = await runWith(story);
  const tax = await find(runId, { text: 'Tax' });
  expect(tax.count).toBe(3);
  expect(tax.excerpts).toEqual([
    'Round the TAX of each invoice',
    'I look at the tax code. Größe 100%_done',
    expect.stringContaining('printf "tax\\n"'),
  ]);
  const [action] = (await find(runId, { text: 'fails' })).seqs;
  expect(action).toBeUndefined();
  expect((await find(runId, { text: 'rounding failed' })).seqs).toEqual([tax.seqs[2]]);
  expect((await find(runId, { text: 'GRÖSSE' })).count + (await find(runId, { text: 'GRÖßE' })).count).toBe(1);
  expect((await find(runId, { text: 'registry.test' })).count).toBe(1);
  expect((await find(runId, { kind: 'turn' })).excerpts).toEqual(['Round the TAX of each invoice', 'Now commit']);
  expect((await find(runId, { kind: 'failure' })).seqs).toEqual([tax.seqs[2]]);
  const second = await find(runId, { text: 'tax', limit: 1, after: tax.seqs[0] ?? 0 });
  expect(second).toMatchObject({ count: 3, seqs: [tax.seqs[1]] });
});

test('takes the text literally', async () => {
  const { runId } = await runWith(story);
  for (const text of ['.*', '%', '_', '\\', '(a+)+$', "'", '{}'])
    expect([text, (await find(runId, { text })).count]).toEqual([
      text,
      ['%', '_', '\\'].includes(text) ? expect.any(Number) : 0,
    ]);
  expect((await find(runId, { text: '%' })).count).toBe(1);
  expect((await find(runId, { text: 't_x' })).count).toBe(0);
  for (const text of ['', ' ', 'x'.repeat(201), 'a\u0000']) expect((await ask(runId, { text })).status).toBe(400);
});

test('answers only keys that may read the run', async () => {
  const { runId } = await runWith(story);
  const other = await service.startExecution();
  const teamUid = await teamUidOf(service);
  const viewer = await newPerson(service, teamUid, 'viewer');
  const stranger = await newPerson(service, await newTeam(service), 'viewer');
  expect((await ask(runId, { text: 'tax' }, viewer.key)).status).toBe(200);
  expect((await ask(runId, { text: 'tax' }, stranger.key)).status).toBe(404);
  expect((await ask(runId, { text: 'tax' }, other.runToken)).status).toBe(401);
});

test('finds a text in 20,000 events in less than the time limit, also if the text nearly matches everywhere', async () => {
  const near = 'a'.repeat(150);
  const many = Array.from({ length: 6_600 }, (_, n): AgentEventBody[] => [
    run(`a${n}`, { command: near }),
    { type: 'action_output', action_id: `a${n}`, text: near.repeat(4) },
    { type: 'action_result', action_id: `a${n}`, state: 'completed', exit_code: 0 },
  ]).flat();
  const { runId } = await runWith([begun, turn('Go'), ...many, say('last', 'the end')]);
  const before = performance.now();
  expect(await find(runId, { text: `${near}b` })).toMatchObject({ count: 0 });
  expect((await find(runId, { text: 'the end' })).excerpts).toEqual(['the end']);
  expect(performance.now() - before).toBeLessThan(10_000);
});
