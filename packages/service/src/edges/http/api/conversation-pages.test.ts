import type { AgentEventBody } from '@runyard/contract/runs/agent-events';
import { RunMessagePage } from '@runyard/contract/runs/conversation-pages';
import { ConversationResponse, type Message } from '@runyard/contract/runs/conversations';
import { expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();
const at = '2026-11-21T10:00:00Z';

/** Starts a run whose agent reports the events. */
async function runWith(bodies: readonly AgentEventBody[]): Promise<string> {
  const { runId, runToken } = await service.startExecution();
  for (let sent = 0; sent < bodies.length; sent += 1000) {
    const events = bodies.slice(sent, sent + 1000).map((body, n) => ({ seq: sent + n + 1, occurred_at: at, ...body }));
    await service.ok('POST', '/harness-support/events', { key: runToken, body: { events } });
  }
  return runId;
}

const pathOf = (runId: string) => `/agent/runs/${runId}/conversation/messages`;

async function readPage(runId: string, query = ''): Promise<RunMessagePage> {
  const body = await service.ok('GET', pathOf(runId) + query);
  return RunMessagePage.parse(body);
}

/** Reads all pages, newest first. */
async function readPages(runId: string, limit: number): Promise<RunMessagePage[]> {
  const pages = [await readPage(runId, `?limit=${limit}`)];
  for (let older = pages[0]?.older; older !== undefined; older = pages.at(-1)?.older)
    pages.push(await readPage(runId, `?limit=${limit}&before=${encodeURIComponent(older)}`));
  return pages;
}

function outputOf(page: RunMessagePage | undefined, actionId: string) {
  const blocks = page?.steps.flatMap(({ messages }) => messages.flatMap(({ content }) => content)) ?? [];
  return blocks.filter((block) => block.type === 'action_result').find((block) => block.action_id === actionId);
}

const wholeOf = async (runId: string) =>
  await service.ok<ConversationResponse>('GET', `/agent/runs/${runId}/conversation`);

const text = (message_id: string, piece: string, step_id = 's1'): AgentEventBody => ({
  type: 'text',
  step_id,
  message_id,
  role: 'assistant',
  text: piece,
});
const action = (action_id: string, step_id = 's1'): AgentEventBody => ({
  type: 'action',
  step_id,
  action_id,
  category: 'command',
  name: 'shell',
  input: { command: action_id },
});
const output = (action_id: string, piece: string): AgentEventBody => ({
  type: 'action_output',
  action_id,
  text: piece,
});
const result = (action_id: string): AgentEventBody => ({ type: 'action_result', action_id, state: 'completed' });
const begun: AgentEventBody = { type: 'agent_started', harness: 'oz', model_id: 'runbook' };
const turn = (step_id: string): AgentEventBody => ({ type: 'turn_started', step_id, prompt: `Do ${step_id}` });
const finished = (step_id: string): AgentEventBody => ({ type: 'turn_finished', step_id, summary: `Did ${step_id}` });

const story = [
  begun,
  ...Array.from({ length: 12 }, (_, n) => {
    const step = `s${n}`;
    const parts = [text(`m${n}`, 'Wor', step), text(`m${n}`, 'king', step), action(`a${n}`, step)];
    return [turn(step), ...parts, output(`a${n}`, 'one\n'), output(`a${n}`, 'two\n'), result(`a${n}`), finished(step)];
  }).flat(),
];

test('pages of a conversation contain each message once, and together the whole conversation', async () => {
  const runId = await runWith(story);
  const pages = await readPages(runId, 5);
  expect(pages.length).toBeGreaterThan(6);
  const steps = new Map<string, Record<string, unknown> & { messages: Message[] }>();
  for (const { steps: onPage, continued } of pages.toReversed()) {
    expect(continued).toEqual([]);
    for (const { messages, ...step } of onPage) {
      const before = steps.get(step.id);
      const plain = messages.map(({ seq: _, ...message }) => message);
      steps.set(step.id, { ...before, ...step, messages: [...(before?.messages ?? []), ...plain] });
    }
  }
  const whole = await wholeOf(runId);
  expect([...steps.values()]).toEqual(whole.steps.map(({ steps: _, ...step }) => step));
  expect(pages[0]?.conversation_id).toBe(whole.conversation_id);
  expect(pages[0]?.steps.at(-1)?.messages.at(-1)?.content).toMatchObject([{ action_id: 'a11', state: 'completed' }]);
});

test('the stream of the run continues after the newest page without a gap or a repetition', async () => {
  const { runId, runToken } = await service.startExecution();
  const report = (events: readonly AgentEventBody[], first: number) =>
    service.report(
      runToken,
      events.map((event, n) => ({ seq: first + n, occurred_at: at, ...event })),
    );
  expect(await readPage(runId)).toMatchObject({ steps: [], continued: [] });
  await report([begun, turn('s1'), action('a1'), output('a1', 'one\n')], 1);
  const page = await readPage(runId);
  expect(page.steps[0]?.messages.at(-1)?.content).toMatchObject([{ state: 'running', output: { text: 'one\n' } }]);
  await report([output('a1', 'two\n')], 5);
  const headers = { 'last-event-id': page.reached };
  const { text: stream } = await service.request('GET', `/agent/runs/${runId}/events?follow=false`, { headers });
  const events = [...stream.matchAll(/^data: (.*)$/gm)].map(([, data = '']) => JSON.parse(data).event);
  expect(events).toMatchObject([{ type: 'action_output', action_id: 'a1', text: 'two\n' }]);
});

test('an action that spans two pages continues on the newer page', async () => {
  const runId = await runWith([
    begun,
    turn('s1'),
    action('long'),
    output('long', 'first\n'),
    ...Array.from({ length: 3000 }, (_, n) => [text(`m${n}`, 'x'), output('long', `${n}\n`)]).flat(),
    result('long'),
    text('last', 'Done'),
  ]);
  const [newest, older] = await readPages(runId, 500);
  expect(newest?.continued.at(-1)).toMatchObject({ type: 'action_result', action_id: 'long', state: 'completed' });
  expect(newest?.continued.every(({ action_id }) => action_id === 'long')).toBe(true);
  const running = outputOf(older, 'long');
  expect(running?.state).toBe('running');
  const after = newest?.continued.map((event) => (event.type === 'action_output' ? event.text : '')).join('');
  const all = `first\n${Array.from({ length: 3000 }, (_, n) => `${n}\n`).join('')}`;
  expect(`${running?.output.text}${after}`).toBe(all);
});

test('an action that was interrupted by the end of its run is shown as failed', async () => {
  const runId = await runWith([
    begun,
    turn('s1'),
    action('a1'),
    ...Array.from({ length: 9 }, (_, n) => text(`${n}`, 'x')),
  ]);
  await service.request('POST', `/agent/runs/${runId}/cancel`);
  const pages = await readPages(runId, 5);
  const [action1] = pages.flatMap((page) => outputOf(page, 'a1') ?? []);
  expect(action1).toMatchObject({ state: 'failed', output: { text: expect.stringContaining('interrupted') } });
});

test('a page shortens long content and gives its size, and the whole message can be read separately', async () => {
  const lines = 'A line of the output\n'.repeat(2_500);
  const prompt = 'p'.repeat(40_000);
  const runId = await runWith([
    begun,
    { ...turn('s1'), prompt } as AgentEventBody,
    { ...action('a1'), input: { content: 'c'.repeat(20_000) } } as AgentEventBody,
    output('a1', lines),
    result('a1'),
    { type: 'notice', step_id: 's1', name: 'plan', data: { text: 'n'.repeat(10_000) } },
    text('m1', 'Do'),
    action('a2'),
    text('m1', 'ne'),
  ]);
  const page = await readPage(runId);
  const messages = page.steps[0]?.messages ?? [];
  expect(messages.map(({ whole_bytes }) => whole_bytes)).toEqual([
    40_000,
    20_014,
    52_500,
    10_011,
    undefined,
    undefined,
    undefined,
  ]);
  expect(JSON.stringify(page).length).toBeLessThan(70_000);
  const whole = (await wholeOf(runId)).steps[0]?.messages ?? [];
  const read = async (seq: number | undefined) => {
    const body = await service.ok<ConversationResponse>('GET', `${pathOf(runId)}/${seq}`);
    return ConversationResponse.parse(body).steps.flatMap((step) => step.messages);
  };
  expect(await read(messages[0]?.seq)).toEqual(whole.slice(0, 1));
  expect(await read(messages[1]?.seq)).toEqual(whole.slice(1, 3));
  expect(await read(messages[3]?.seq)).toEqual(whole.slice(3, 4));
  expect(await read(messages[4]?.seq)).toEqual(whole.slice(4, 5));
  for (const seq of ['0', '4', '99999', 'x'])
    expect((await service.problem(404, 'GET', `${pathOf(runId)}/${seq}`)).detail).toContain('message');
});

test('a cursor of another run, and a cursor that a client made up, are refused', async () => {
  const [one, two] = [await runWith(story), await runWith(story)];
  const { older = '' } = await readPage(one, '?limit=1');
  for (const before of [older, `${older.split('.')[0]}.AAAA`, 'x'])
    expect(
      (await service.problem(400, 'GET', `${pathOf(two)}?before=${encodeURIComponent(before)}`)).errors,
    ).toMatchObject([{ path: 'before' }]);
  await service.problem(400, 'GET', `${pathOf(one)}?limit=501`);
});

test('viewers of the team can read the pages of a run, and another team cannot', async () => {
  const runId = await runWith(story);
  const message = `${pathOf(runId)}/${(await readPage(runId)).steps[0]?.messages[0]?.seq}`;
  const viewer = await service.newKey({ role: 'viewer' });
  expect((await service.request('GET', pathOf(runId), { key: viewer })).status).toBe(200);
  expect((await service.request('GET', message, { key: viewer })).status).toBe(200);
  await service.problem(404, 'GET', pathOf(runId), { key: service.otherKey });
  await service.problem(404, 'GET', message, { key: service.otherKey });
});

test('a run whose harness has only raw output has no pages, finds nothing and cannot be forked', async () => {
  const config = { harness: { type: 'command', command: ['x'] } };
  const { runId, conversationId } = await service.startExecution({ config });
  await service.problem(422, 'GET', pathOf(runId));
  await service.problem(422, 'GET', `/agent/runs/${runId}/conversation/find?text=a`);
  await service.problem(422, 'POST', `/agent/conversations/${conversationId}/fork`, { body: {} });
});

test('too many concurrent reads of pages are answered with 429', async () => {
  const runId = await runWith(story);
  await service.deps.db.query('UPDATE runs SET event_bytes = 50000000 WHERE id = $1', [runId]);
  const { conversationReads: reads, db } = service.deps;
  const places = Array.from({ length: 24 }, () => reads.tryEnter({ teamId: service.teamId }, 1024 * 1024));
  expect(places.at(-1)).toBeDefined();
  expect(await db.query('SELECT 1')).toHaveLength(1);
  const asked = Array.from({ length: 17 }, () => service.request('GET', pathOf(runId)));
  const message = await Promise.race([...asked, service.request('GET', `${pathOf(runId)}/3`)]);
  expect(message.status).toBe(429);
  for (const place of places) place?.release();
  expect((await Promise.all(asked)).filter(({ status }) => status === 200).length).toBeGreaterThan(15);
});
