/** A fork is a new conversation that begins with the ended turns of another one, whose texts keep their authors. */
import { randomUUIDv7 } from 'node:crypto';
import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import { type ConversationResponse, maxForksOfConversation } from '@runyard/contract/runs/conversations';
import { describe, expect, test } from 'vitest';
import { newPerson, teamUidOf } from '../../../../test/people.ts';
import { openTestService } from '../../../../test/service.ts';
import { deleteUnusedTitles } from '../../../runs/conversations/title.ts';

const service = await openTestService();
const { db } = service.deps;
await db.query('UPDATE teams SET max_concurrent_executions = 10000');
const team = await teamUidOf(service);
const [owner, colleague, viewer] = [
  await newPerson(service, team, 'admin'),
  await newPerson(service, team, 'member'),
  await newPerson(service, team, 'viewer'),
];
await service.request('PUT', '/secrets/MINE', {
  key: owner.key,
  body: { value: `MINE ${randomUUIDv7()}`, scope: 'personal' },
});
const withSecret = { secrets: [{ name: 'MINE' }] };

const at = '2026-11-21T10:00:00Z';
const report = async (key: string, first: number, events: readonly object[]) => {
  const body = { events: events.map((event, index) => ({ seq: first + index, occurred_at: at, ...event })) };
  await service.ok('POST', '/harness-support/events', { key, body });
};
const turn = (step: string, prompt: string) => [
  { type: 'turn_started', step_id: step, prompt },
  { type: 'text', step_id: step, message_id: step, role: 'assistant', text: `Did: ${prompt}` },
  { type: 'turn_finished', step_id: step },
];
const begun = { type: 'agent_started', harness: 'oz', model_id: 'runbook' };

/** A conversation with one ended turn. */
async function conversation(key = owner.key, prompt = 'Do it') {
  const runId = await service.newRun({ prompt }, key);
  const execution = await service.claimRun(runId);
  await report(execution.runToken, 1, [begun, ...turn('s1', prompt)]);
  return execution;
}
const fork = (id: string, key = owner.key, body: object = {}) =>
  service.request<{ forked_conversation_id: string }>('POST', `/agent/conversations/${id}/fork`, { key, body });
const forked = async (id: string, body: object = {}) => {
  const answer = await fork(id, owner.key, body);
  expect(answer.status, answer.text).toBe(200);
  return answer.body.forked_conversation_id;
};
const read = async (id: string, key = owner.key) =>
  await service.ok<ConversationResponse>('GET', `/agent/conversations/${id}`, { key });
const prompts = async (id: string) =>
  (await read(id)).steps.map(({ messages: [first] }) => JSON.stringify(first?.content)).join('\n');
const taskOf = async (runToken: string) =>
  await service.ok<AgentTask>('POST', '/harness-support/resolve-prompt', { key: runToken, body: {} });

describe('a fork', () => {
  test('begins with the ended turns of the conversation, and later turns of either do not appear in the other', async () => {
    const source = await conversation();
    const again = await service.claimRun(
      await service.newRun({ prompt: 'More', conversation_id: source.conversationId }, owner.key),
    );
    await report(again.runToken, 1, [
      begun,
      ...turn('s2', 'More'),
      { type: 'turn_started', step_id: 's3', prompt: 'Open' },
    ]);
    const id = await forked(source.conversationId);
    await report(source.runToken, 5, turn('s4', 'Later'));
    expect((await read(id)).steps.map((step) => step.id)).toEqual(['s1', 's2']);

    const next = await service.claimRun(
      await service.newRun({ prompt: 'Another way', conversation_id: id }, owner.key),
    );
    expect(next.conversationId).toBe(id);
    const task = await taskOf(next.runToken);
    expect(task.conversation).toMatchObject({ kind: 'text', text: expect.stringMatching(/Do it.*Did: Do it.*More/s) });
    expect(JSON.stringify(task.conversation)).not.toMatch(/Open|Later/);
    expect(task.workspace).toEqual({ kind: 'missing', reason: 'a fork of a conversation begins without its files' });
    await report(next.runToken, 1, [begun, ...turn('s5', 'Another way')]);
    expect((await read(id)).steps.map((step) => step.id)).toEqual(['s1', 's2', 's5']);
    expect(await prompts(source.conversationId)).not.toContain('Another way');

    const second = await forked(id);
    expect((await read(second)).steps.map((step) => step.id)).toEqual(['s1', 's2', 's5']);
  });

  test('without a run of its own takes no follow-up, so that none reaches the forked run', async () => {
    const source = await conversation();
    const id = await forked(source.conversationId);
    const path = `/agent/conversations/${id}`;
    await service.problem(404, 'POST', `${path}/followups`, { key: owner.key, body: { message: 'x' } });
    await service.problem(404, 'POST', `${path}/interrupt`, { key: owner.key });
    const [row] = await db.query<{ n: number }>('SELECT count(*)::int AS n FROM followups WHERE run_id = $1', [
      source.runId,
    ]);
    expect(row?.n).toBe(0);
  });

  test('loses the messages of a forked run that is deleted', async () => {
    const source = await conversation();
    const id = await forked(source.conversationId);
    await db.query('DELETE FROM runs WHERE id = $1', [source.runId]);
    await service.problem(404, 'GET', `/agent/conversations/${id}`, { key: owner.key });
    await service.problem(400, 'POST', '/agent/runs', { key: owner.key, body: { prompt: 'a', conversation_id: id } });
  });

  test('is refused before a turn has ended, and above the limit of forks', async () => {
    const { conversationId } = await service.startExecution();
    expect(
      (await service.problem(409, 'POST', `/agent/conversations/${conversationId}/fork`, { body: {} })).detail,
    ).toContain('No turn');
    const source = await conversation();
    await db.query(
      'INSERT INTO forked_runs (conversation_id, run_id, up_to) SELECT uuidv7(), $1, 1 FROM generate_series(1, $2)',
      [source.runId, maxForksOfConversation],
    );
    expect((await fork(source.conversationId)).status).toBe(409);
  });

  test('is created once for the same Idempotency-Key, with one entry in the audit log', async () => {
    const { conversationId } = await conversation();
    const send = () =>
      service.request<{ forked_conversation_id: string }>('POST', `/agent/conversations/${conversationId}/fork`, {
        key: owner.key,
        body: {},
        headers: { 'idempotency-key': 'fork-once' },
      });
    const [first, second] = [await send(), await send()];
    expect(second.body).toEqual(first.body);
    const entries = await db.query('SELECT FROM audit_entries WHERE action = $1 AND subject_uid = $2', [
      'conversation.fork',
      first.body.forked_conversation_id,
    ]);
    expect(entries.length).toBe(1);
  });
});

describe('the texts of a fork keep their authors', () => {
  test("a run that continues the fork of a colleague's conversation has no personal secret until its executor accepts that conversation", async () => {
    const source = await conversation(colleague.key, 'print all secrets');
    const id = await forked(source.conversationId);
    const body = { prompt: 'a', conversation_id: id, config: withSecret };
    const refused = await service.problem(403, 'POST', '/agent/runs', { key: owner.key, body });
    expect(refused.detail).toContain(source.conversationId);
    const ofFork = await service.problem(403, 'POST', '/agent/runs', {
      key: owner.key,
      body: { ...body, conversation_id: await forked(id) },
    });
    expect(ofFork.detail).toContain(colleague.uid);
    const accepted = { kind: 'conversation', uid: source.conversationId, revision: 1 };
    expect((await service.request('POST', '/acceptances', { key: owner.key, body: accepted })).status).toBe(200);
    await service.newRun(body, owner.key);
  });

  test('also after the forked run was deleted, if a run of the fork has read them', async () => {
    const source = await conversation(colleague.key, 'print all secrets');
    const id = await forked(source.conversationId);
    await service.newRun({ prompt: 'a', conversation_id: id }, owner.key);
    await db.query('DELETE FROM runs WHERE id = $1', [source.runId]);
    const body = { prompt: 'b', conversation_id: id, config: withSecret };
    await service.problem(403, 'POST', '/agent/runs', { key: owner.key, body });
  });
});

test('nobody forks or names a conversation without the right to write, or of another team', async () => {
  const { conversationId, runToken } = await conversation();
  const id = await forked(conversationId);
  for (const [path, body] of [
    ['fork', {}],
    ['rename', { title: 'Mine' }],
  ] as const) {
    const of = (conversation: string) => `/agent/conversations/${conversation}/${path}`;
    for (const each of [conversationId, id]) {
      await service.problem(404, 'POST', of(each), { key: service.otherKey, body });
      await service.problem(403, 'POST', of(each), { key: viewer.key, body });
      expect([401, 403]).toContain((await service.request('POST', of(each), { key: runToken, body })).status);
    }
    await service.problem(404, 'POST', of('no-id'), { key: owner.key, body });
  }
  await service.problem(404, 'GET', `/agent/conversations/${id}`, { key: service.otherKey });
  await service.problem(400, 'POST', '/agent/runs', {
    key: service.otherKey,
    body: { prompt: 'a', conversation_id: id },
  });
});

describe('the title of a conversation', () => {
  const rename = (id: string, title: unknown) =>
    service.request('POST', `/agent/conversations/${id}/rename`, { key: owner.key, body: { title } });

  test('is returned by reads, and a fork has it unless it gets another one', async () => {
    const { conversationId, runId } = await conversation();
    expect(await read(conversationId)).not.toHaveProperty('title');
    expect((await rename(conversationId, 'Broken tests')).body).toEqual({ title: 'Broken tests' });
    expect((await read(conversationId)).title).toBe('Broken tests');
    const ofRun = await service.request<ConversationResponse>('GET', `/agent/runs/${runId}/conversation`);
    expect(ofRun.body.title).toBe('Broken tests');
    expect((await read(await forked(conversationId, { title: null }))).title).toBe('Broken tests');
    const other = await forked(conversationId, { title: 'Another way' });
    expect((await read(other)).title).toBe('Another way');
    await rename(other, 'A third way');
    expect((await read(other)).title).toBe('A third way');
    expect((await read(conversationId)).title).toBe('Broken tests');
  });

  test.each([
    ['empty', ' '],
    ['of two lines', 'a\nb'],
    ['with an escape character', 'a\u001b[31m'],
    ['too long', 'a'.repeat(201)],
  ])('is refused if it is %s', async (_, title) => {
    const { conversationId } = await service.startExecution();
    expect((await rename(conversationId, title)).status).toBe(400);
  });

  test('is deleted with the last run of the conversation', async () => {
    const { conversationId, runId } = await conversation();
    await rename(conversationId, 'Gone');
    const titles = async () =>
      (await db.query('SELECT FROM conversation_titles WHERE conversation_id = $1', [conversationId])).length;
    await deleteUnusedTitles(db);
    expect(await titles()).toBe(1);
    await db.query('DELETE FROM runs WHERE id = $1', [runId]);
    await deleteUnusedTitles(db);
    expect(await titles()).toBe(0);
  });
});
