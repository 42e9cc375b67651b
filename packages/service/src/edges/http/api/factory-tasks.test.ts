import { randomUUIDv7 } from 'node:crypto';
import type { Factory } from '@runyard/contract/factories/factories';
import type { DispatchResponse } from '@runyard/contract/factories/factory-definitions';
import type { FactoryTask, ListFactoryTasksResponse } from '@runyard/contract/factories/factory-tasks';
import type { RunItem } from '@runyard/contract/runs/runs';
import { expect, test } from 'vitest';
import { openTestService, type RequestOptions } from '../../../../test/service.ts';

const service = await openTestService();
const newFactory = async (key = service.key) => {
  const body = { name: 'Billing', agent_defaults: { model_id: 'runbook' } };
  return (await service.request<Factory>('POST', '/factory', { key, body })).body.uid;
};
const factoryUid = await newFactory();

const post = async <T>(path: string, body?: unknown, options: RequestOptions = {}) =>
  await service.request<T>('POST', path, { ...options, ...(body === undefined ? {} : { body }) });
const runOf = async (runId: string) => (await service.request<RunItem>('GET', `/agent/runs/${runId}`)).body;
const conversationOf = async (runId: string) => (await runOf(runId)).conversation_id ?? expect.fail('no conversation');
const read = async (uid: string, of = factoryUid) =>
  (await service.request<FactoryTask>('GET', `/factory/${of}/tasks/${uid}`)).body;
const create = (body: object, options: RequestOptions & { of?: string } = {}) =>
  post<FactoryTask>(`/factory/${options.of ?? factoryUid}/tasks`, body, options);
const cancel = (uid: string, of = factoryUid) => post<FactoryTask>(`/factory/${of}/tasks/${uid}/cancel`);
const dispatch = async (of = factoryUid, body: object = {}) =>
  (await post<DispatchResponse>(`/factory/${of}/runs`, { prompt: 'Fix it.', ...body })).body;
const taskOfRun = (runId: string, of = factoryUid, key = service.key) =>
  service.request<FactoryTask>('GET', `/factory/${of}/task-by-run?run_id=${runId}`, { key });
const dispatchTask = async (of = factoryUid, body: object = {}) =>
  (await taskOfRun((await dispatch(of, body)).run_id, of)).body;
const list = async (query: string, of = factoryUid) =>
  (await service.request<ListFactoryTasksResponse>('GET', `/factory/${of}/tasks?${query}`)).body;

/** Starts a run with a child. Both have begun their work. */
async function startTree() {
  const root = await service.startExecution({ mode: 'orchestrate' });
  const { body } = await post<{ run_id: string }>(
    '/harness-support/child-runs',
    { prompt: 'b' },
    { key: root.runToken },
  );
  const child = await service.claimRun(body.run_id);
  return { root, child };
}
const report = (key: string, n: number, artifact_type = 'EXTERNAL_REFERENCE') =>
  post(
    '/harness-support/report-artifact',
    {
      artifact_type,
      data:
        artifact_type === 'PLAN'
          ? { title: 'P', content: 'p' }
          : { reference_type: 'issue', url: `https://example.com/${n}` },
    },
    { key },
  );
const urlsOf = ({ outputs = [] }: FactoryTask) => outputs.map(({ data }) => ('url' in data ? data.url : data));

test('a dispatch creates a task in TRIAGE with the title, the creator and the ticket of its run', async () => {
  const run = await dispatch(factoryUid, { title: 'Fix the bill', ticket_ref: 'linear:BILL-12' });
  const task = (await taskOfRun(run.run_id)).body;
  const item = await runOf(run.run_id);
  expect(task).toEqual({
    uid: expect.stringMatching(/^\w{22}$/),
    factory_uid: factoryUid,
    conversation_id: item.conversation_id,
    run_id: run.run_id,
    title: 'Fix the bill',
    stage: 'TRIAGE',
    created_at: expect.any(String),
    updated_at: task.created_at,
    author: item.creator,
    current_run: { run_id: run.run_id, state: 'QUEUED', is_run_type_cancellable: true },
    outputs: [],
    ticket_source: 'linear',
    ticket_id: 'BILL-12',
  });
  const path = `/factory/${factoryUid}/task-by-conversation?conversation_id=${item.conversation_id}`;
  expect((await service.request('GET', path)).body).toEqual(task);
  expect(await read(task.uid)).toEqual(task);
});

test('a dispatch that is repeated with its Idempotency-Key creates one run and one task, and gets the same answer', async () => {
  const of = await newFactory();
  const send = () =>
    post<DispatchResponse>(`/factory/${of}/runs`, { prompt: 'a' }, { headers: { 'idempotency-key': randomUUIDv7() } });
  const headers = { 'idempotency-key': randomUUIDv7() };
  const repeat = () => post<DispatchResponse>(`/factory/${of}/runs`, { prompt: 'a' }, { headers });
  const answers = await Promise.all([repeat(), repeat(), repeat()]);
  for (const { body } of answers) expect(body).toEqual(answers[0].body);
  expect((await list('', of)).tasks).toHaveLength(1);
  await Promise.all([send(), send()]);
  expect((await list('', of)).tasks).toHaveLength(3);
  await service.request('DELETE', `/factory/${of}`);
  expect((await repeat()).body, 'also after the factory was deleted').toEqual(answers[0].body);
});

test('a conversation gets one task, even if many requests for it arrive at once in several factories', async () => {
  const conversation_id = await conversationOf(await service.newRun());
  const other = await newFactory();
  const asked = [factoryUid, other, factoryUid, other].map((of) => create({ conversation_id, title: 'T' }, { of }));
  const answers = await Promise.all(asked);
  expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409]);
  const made = answers.find(({ status }) => status === 201)?.body ?? expect.fail('none was created');
  const problem = await service.problem(409, 'POST', `/factory/${other}/tasks`, {
    body: { conversation_id, title: 'T' },
  });
  expect(problem.detail).toContain(`the task ${made.uid} of the factory ${made.factory_uid}`);
  const place = `/factory/${made.factory_uid}/tasks/${made.uid}`;
  expect((await service.request('DELETE', place)).body).toEqual({ success: true });
  expect((await service.request('DELETE', place)).status).toBe(404);
  expect((await create({ conversation_id, title: 'Again', description: null })).status).toBe(201);
});

test('two creates with the same Idempotency-Key create one task', async () => {
  const conversation_id = await conversationOf(await service.newRun());
  const headers = { 'idempotency-key': randomUUIDv7() };
  const send = () => create({ conversation_id, title: 'T', stage: 'SPEC', description: 'D' }, { headers });
  const [first, second] = await Promise.all([send(), send()]);
  expect(first.body).toMatchObject({ title: 'T', stage: 'SPEC', description: 'D' });
  expect(second.body).toEqual(first.body);
});

test('a conversation of another team, without a run, or of a child run is refused', async () => {
  const theirs = await service.newRun({}, service.otherKey);
  const their = await service.request<RunItem>('GET', `/agent/runs/${theirs}`, { key: service.otherKey });
  const refused = async (conversation_id: string) =>
    (await service.problem(400, 'POST', `/factory/${factoryUid}/tasks`, { body: { conversation_id, title: 'T' } }))
      .errors;
  const none = [{ path: 'conversation_id', message: 'there is no such conversation' }];
  expect(await refused(their.body.conversation_id ?? '')).toEqual(none);
  expect(await refused(randomUUIDv7())).toEqual(none);
  expect(await refused('x')).toEqual(none);
  const { child } = await startTree();
  expect((await refused(await conversationOf(child.runId)))?.[0]?.message).toContain('other runs started');
});

test('the stage of a task is CANCELLED while its run is cancelled, until a later stage is written or the run continues', async () => {
  const task = await dispatchTask();
  await service.request('PATCH', `/factory/${factoryUid}/tasks/${task.uid}`, { body: { stage: 'IMPLEMENT' } });
  await post(`/agent/runs/${task.run_id}/cancel`);
  const cancelled = await read(task.uid);
  expect(cancelled).toMatchObject({ stage: 'CANCELLED', current_run: { state: 'CANCELLED' } });
  expect(cancelled.updated_at > task.updated_at).toBe(true);
  const written = { body: { stage: 'REVIEW' } };
  const path = `/factory/${factoryUid}/tasks/${task.uid}`;
  expect((await service.request('PATCH', path, written)).body).toMatchObject({ stage: 'REVIEW' });

  const other = await dispatchTask();
  await post(`/agent/runs/${other.run_id}/cancel`);
  expect((await post(`/agent/runs/${other.run_id}/followups`, { message: 'Go on.' })).status).toBe(200);
  expect(await read(other.uid)).toMatchObject({ stage: 'TRIAGE', current_run: { state: 'QUEUED' } });
});

test('an update of a task changes only the members that the update contains', async () => {
  const { uid } = await dispatchTask(factoryUid, { title: 'A' });
  const change = async (body: object) =>
    (await service.request<FactoryTask>('PATCH', `/factory/${factoryUid}/tasks/${uid}`, { body })).body;
  expect(await change({ description: 'D' })).toMatchObject({ title: 'A', description: 'D', stage: 'TRIAGE' });
  expect(await change({ title: 'B', stage: 'COMPLETE' })).toMatchObject({
    title: 'B',
    description: 'D',
    stage: 'COMPLETE',
  });
  expect(await change({ description: '' })).not.toHaveProperty('description');
  for (const body of [{ title: ' ' }, { stage: 'DONE' }, { description: 'é'.repeat(20_001) }])
    await service.problem(400, 'PATCH', `/factory/${factoryUid}/tasks/${uid}`, { body });
});

test("a cancel of a task cancels the task's run and the descendants of the run, and all concurrent callers get an answer", async () => {
  const { root, child } = await startTree();
  const { body: task } = await create({ conversation_id: await conversationOf(root.runId), title: 'T' });
  const answers = await Promise.all([cancel(task.uid), cancel(task.uid), cancel(task.uid)]);
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
  expect(answers.map(({ body }) => body.stage)).toEqual(['CANCELLED', 'CANCELLED', 'CANCELLED']);
  expect([(await runOf(root.runId)).state, (await runOf(child.runId)).state]).toEqual(['CANCELLED', 'CANCELLED']);
  expect((await cancel(task.uid)).status, 'again').toBe(200);
});

test('a cancel of a task whose run has ended cancels the live descendants of the run, and keeps the state of the run', async () => {
  const { root, child } = await startTree();
  const { body: task } = await create({ conversation_id: await conversationOf(root.runId), title: 'T' });
  const started = {
    seq: 1,
    occurred_at: '2026-01-02T03:04:05.000Z',
    type: 'agent_started',
    harness: 'oz',
    model_id: 'runbook',
  };
  await post('/harness-support/events', { events: [started] }, { key: root.runToken });
  await service.request('POST', '/harness-support/finish-task', {
    key: root.runToken,
    body: { success: true, summary: 'Done.' },
  });
  expect([(await runOf(root.runId)).state, (await runOf(child.runId)).state]).toEqual(['SUCCEEDED', 'CLAIMED']);
  expect((await cancel(task.uid)).body).toMatchObject({ stage: 'CANCELLED', current_run: { state: 'SUCCEEDED' } });
  expect([(await runOf(root.runId)).state, (await runOf(child.runId)).state]).toEqual(['SUCCEEDED', 'CANCELLED']);
  const cascades = await service.deps.db.query('SELECT id FROM runs WHERE cascade_at IS NOT NULL');
  expect(cascades).toEqual([]);
});

test('a task whose run is PENDING or self-hosted cannot be cancelled, and its stage does not change', async () => {
  const of = await newFactory();
  const pending = await dispatchTask(of);
  const next = async () => await service.request<RunItem>('GET', `/agent/runs/${pending.run_id}`);
  while ((await next()).body.state === 'QUEUED') await service.assignNext();
  const problem = await service.problem(409, 'POST', `/factory/${of}/tasks/${pending.uid}/cancel`);
  expect(problem.retryable).toBe(true);
  const selfHosted = await service.newRun({ config: { worker_host: 'build-1' } });
  const { body: task } = await create({ conversation_id: await conversationOf(selfHosted), title: 'T' }, { of });
  expect(task.current_run?.is_run_type_cancellable).toBe(false);
  await service.problem(422, 'POST', `/factory/${of}/tasks/${task.uid}/cancel`);
  expect((await list('', of)).tasks.map(({ stage }) => stage)).toEqual(['TRIAGE', 'TRIAGE']);
});

test('the outputs of a task are the artifacts of all runs of its tree except plans; in a full list, the outputs are only those of the conversation', async () => {
  const of = await newFactory();
  const { root, child } = await startTree();
  const conversation_id = await conversationOf(root.runId);
  await create({ conversation_id, title: 'T' }, { of });
  const stranger = await service.startExecution();
  for (const [token, n] of [
    [root.runToken, 1],
    [child.runToken, 2],
    [stranger.runToken, 3],
  ] as const)
    await report(token, n);
  await report(root.runToken, 0, 'PLAN');
  expect(urlsOf((await taskOfRun(child.runId, of)).body)).toEqual(['https://example.com/2', 'https://example.com/1']);
  const [full] = (await list('full_list=true', of)).tasks;
  expect(full && urlsOf(full)).toEqual(['https://example.com/1']);
  const [lean] = (await list('', of)).tasks;
  expect(Object.keys(lean ?? {})).toEqual(expect.not.arrayContaining(['outputs', 'current_run', 'ticket_id']));
  const [withRun] = (await list('include_current_run=true', of)).tasks;
  expect(withRun?.current_run?.run_id).toBe(root.runId);
});

test("the current run of a task is the newest run of the conversation, and the task's run_id does not change", async () => {
  const task = await dispatchTask();
  await post(`/agent/runs/${task.run_id}/cancel`);
  const next = await service.newRun({ conversation_id: task.conversation_id });
  expect(await read(task.uid)).toMatchObject({
    run_id: task.run_id,
    stage: 'TRIAGE',
    current_run: { run_id: next, state: 'QUEUED' },
  });
  expect((await taskOfRun(next)).body.uid).toBe(task.uid);
  for (const runId of [task.run_id, next]) {
    if (runId === next) await post(`/agent/runs/${next}/cancel`);
    expect((await service.request('DELETE', `/agent/runs/${runId}`)).status).toBe(200);
  }
  const left = await read(task.uid);
  expect(left).toMatchObject({ stage: 'TRIAGE', outputs: [] });
  expect(Object.keys(left)).toEqual(expect.not.arrayContaining(['author', 'current_run']));
  expect((await cancel(task.uid)).body.stage, 'there is no run to cancel').toBe('CANCELLED');
});

test('a list has pages in both orders of both sorts, and its cursors work only for this list', async () => {
  const of = await newFactory();
  const made = [];
  for (const title of ['a', 'b', 'c', 'd', 'e']) made.push(await dispatchTask(of, { title }));
  // Cancel a run, so that the time of the task's last change differs from the order of creation.
  await post(`/agent/runs/${made[1]?.run_id}/cancel`);
  const titles = async (query: string) => {
    const found: string[] = [];
    let cursor = '';
    do {
      const page = await list(`${query}&limit=2${cursor}`, of);
      found.push(...page.tasks.map(({ title }) => title));
      cursor = page.page_info.next_cursor ? `&cursor=${page.page_info.next_cursor}` : '';
    } while (cursor !== '');
    return found.join('');
  };
  expect(await titles('sort_order=asc')).toBe('abcde');
  expect(await titles('')).toBe('edcba');
  expect(await titles('sort_by=updated_at')).toBe('bedca');
  expect(await titles('sort_by=updated_at&sort_order=asc')).toBe('acdeb');
  const { page_info } = await list('limit=2', of);
  for (const query of [`limit=2&q=a&cursor=${page_info.next_cursor}`, `sort_order=asc&cursor=${page_info.next_cursor}`])
    await service.problem(400, 'GET', `/factory/${of}/tasks?${query}`);
});

test('a list is filtered by stage, creator, times and title', async () => {
  const of = await newFactory();
  const [a, b, c] = [
    await dispatchTask(of, { title: 'Alpha' }),
    await dispatchTask(of, { title: 'Beta' }),
    await dispatchTask(of, { title: 'gamma' }),
  ];
  await post(`/agent/runs/${a.run_id}/cancel`);
  await service.request('PATCH', `/factory/${of}/tasks/${b.uid}`, { body: { stage: 'REVIEW' } });
  await service.deps.db.query("UPDATE users SET email = 'Ann@example.com' WHERE uid = $1", [c.author?.uid]);
  const titles = async (query: string) => (await list(`${query}&sort_order=asc`, of)).tasks.map(({ title }) => title);
  expect(await titles('stage=CANCELLED&stage=REVIEW')).toEqual(['Alpha', 'Beta']);
  expect(await titles('stage=TRIAGE')).toEqual(['gamma']);
  expect(await titles('q=ALPH')).toEqual(['Alpha']);
  expect(await titles('q=%25')).toEqual([]);
  expect(await titles(`created_after=${b.created_at}`)).toEqual(['gamma']);
  expect(await titles(`created_before=${b.created_at}`)).toEqual(['Alpha']);
  expect(await titles(`updated_after=${c.updated_at}`)).toEqual(['Alpha', 'Beta']);
  expect(await titles('created_by=ann@example.com')).toEqual(['Alpha', 'Beta', 'gamma']);
  expect(await titles('created_by=bob@example.com')).toEqual([]);
});

test('viewers only read, agents write, and run tokens and other teams get no access', async () => {
  const { runId, runToken } = await service.startExecution();
  const { body: task } = await create({ conversation_id: await conversationOf(runId), title: 'T' });
  const place = `/factory/${factoryUid}/tasks/${task.uid}`;
  const theirs = await newFactory(service.otherKey);
  const [viewer, agent] = [await service.newKey({ role: 'viewer' }), await service.newKey({ kind: 'agent' })];
  const reads = [
    place,
    `/factory/${factoryUid}/tasks`,
    `/factory/${factoryUid}/task-by-run?run_id=${runId}`,
    `/factory/${factoryUid}/task-by-conversation?conversation_id=${task.conversation_id}`,
  ];
  const statuses = (key: string) =>
    Promise.all(reads.map(async (path) => (await service.request('GET', path, { key })).status));
  expect(await statuses(viewer)).toEqual([200, 200, 200, 200]);
  expect(await statuses(agent)).toEqual([200, 200, 200, 200]);
  expect(await statuses(service.otherKey)).toEqual([404, 404, 404, 404]);
  expect(await statuses(runToken), 'also of the run of the task').toEqual([401, 401, 401, 401]);
  // A caller who names a factory of the own team cannot read the task of another factory or team through it.
  expect((await taskOfRun(runId, theirs, service.otherKey)).status).toBe(404);
  expect((await taskOfRun(runId, await newFactory())).status).toBe(404);
  for (const path of ['task-by-run', 'task-by-conversation'])
    await service.problem(400, 'GET', `/factory/${factoryUid}/${path}`);
  const writes = (key: string) => [
    service.request('PATCH', place, { key, body: { title: 'X' } }),
    service.request('POST', `${place}/cancel`, { key }),
    service.request('DELETE', place, { key }),
    service.request('POST', `/factory/${factoryUid}/tasks`, {
      key,
      body: { conversation_id: task.conversation_id, title: 'X' },
    }),
  ];
  const written = async (key: string) => (await Promise.all(writes(key))).map(({ status }) => status);
  expect(await written(viewer)).toEqual([403, 403, 403, 403]);
  expect(await written(service.otherKey)).toEqual([404, 404, 404, 404]);
  expect(await written(runToken)).toEqual([401, 401, 401, 401]);
  expect(await read(task.uid)).toEqual(task);
  expect((await service.request('PATCH', place, { key: agent, body: { stage: 'SPEC' } })).status).toBe(200);
});

test('a delete of a factory deletes its tasks but not its runs', async () => {
  const of = await newFactory();
  const task = await dispatchTask(of);
  const deleted = service.request('DELETE', `/factory/${of}`);
  const racing = Array.from({ length: 4 }, () => post<DispatchResponse>(`/factory/${of}/runs`, { prompt: 'a' }));
  const statuses = (await Promise.all(racing)).map(({ status }) => status);
  expect((await deleted).status).toBe(200);
  expect(statuses.filter((status) => status !== 200 && status !== 404)).toEqual([]);
  expect(await service.deps.db.query('SELECT uid FROM factory_tasks WHERE factory_uid = $1', [of])).toEqual([]);
  expect((await runOf(task.run_id)).state).toBe('QUEUED');
});
