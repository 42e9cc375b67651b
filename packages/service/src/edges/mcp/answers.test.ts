import { expect, test } from 'vitest';
import { connectMcp } from '../../../test/mcp.ts';
import { openTestService } from '../../../test/service.ts';
import { untrustedMark } from './texts.ts';

const service = await openTestService();
const url = `${service.baseUrl}/mcp`;
const post = (path: string, key: string, body: object) => service.request('POST', path, { key, body });

test('the answer of a tool has its members as structured content, in the schema that the tool declares', async () => {
  const { client } = await connectMcp(url, service.key);
  const { tools } = await client.listTools();
  for (const { name, outputSchema } of tools) expect(outputSchema, name).toMatchObject({ type: 'object' });
  const run_id = await service.newRun();
  // The official client checks the answers with the declared schemas.
  for (const [name, given] of [
    ['list_runs', {}],
    ['get_run', { run_id }],
    ['list_environments', {}],
  ] as const) {
    const { structuredContent, content, _meta, isError } = await client.callTool({ name, arguments: given });
    expect(isError, name).toBeFalsy();
    const text = content.findLast((each) => each.type === 'text');
    expect(structuredContent).toEqual(JSON.parse(text?.type === 'text' ? text.text : ''));
    if (name !== 'list_environments') expect(_meta).toEqual({ [untrustedMark]: true });
  }
  const failed = await client.callTool({ name: 'get_run', arguments: { run_id: 'none' } });
  expect([failed.isError, failed.structuredContent]).toEqual([true, undefined]);
  await client.close();
});

test('a task is found by its references, and is handed back to its run', async () => {
  const factories = await connectMcp(`${service.baseUrl}/api/v1/mcp/factory`, service.key);
  await factories.client.listTools();
  const { uid: factory_uid } = await factories.json<{ uid: string }>('create_factory', { name: 'References' });
  const ticket = { ticket_ref: 'linear:REF-1', ticket_url: 'https://tickets.example/REF-1' };
  const { run_id } = await factories.json<{ run_id: string }>('send_task', {
    factory_uid,
    title: 'Round the total',
    note: 'Up.',
    ...ticket,
  });
  const found = await factories.json<{ tasks: { uid: string }[] }>('search_task', { q: 'ROUND THE' });
  const uid = found.tasks[0]?.uid ?? '';
  const { runToken } = await service.claimRun(run_id);
  const pull = { branch: 'fix/total', url: 'https://code.example/acme/app/pull/7' };
  const reported = await post('/harness-support/report-artifact', runToken, {
    artifact_type: 'PULL_REQUEST',
    data: pull,
  });
  expect(reported.status, reported.text).toBeLessThan(300);
  for (const reference of [
    uid,
    run_id,
    `${service.baseUrl}/runs/${run_id}`,
    `${service.baseUrl}/factories/${factory_uid}/tasks/${uid}`,
    'linear:REF-1',
    'REF-1',
    ticket.ticket_url,
    pull.url,
    pull.branch,
  ])
    expect(await factories.json('get_task', { reference }), reference).toMatchObject({ uid, current_run: { run_id } });
  const theirs = await connectMcp(`${service.baseUrl}/api/v1/mcp/factory`, service.otherKey);
  for (const given of [{ reference: uid }, { run_id }, { reference: 'REF-1' }])
    expect((await theirs.call('get_task', given)).isError).toBe(true);
  expect(await theirs.json('search_task', { q: 'Round' })).toEqual({ tasks: [] });

  const handed = { factory_task_uid: uid, note: 'Done by me.', branch: 'fix/total', pr_url: pull.url };
  expect((await theirs.call('send_task', handed)).isError).toBe(true);
  const viewer = await connectMcp(`${service.baseUrl}/api/v1/mcp/factory`, await service.newKey({ role: 'viewer' }));
  expect((await viewer.call('send_task', handed)).isError).toBe(true);
  expect(await factories.json('send_task', { ...handed, stage_hint: 'REVIEW' })).toEqual({
    mode: 'handback',
    factory_task_uid: uid,
    run_id,
    stage: 'REVIEW',
  });
  expect(await factories.json('get_task', { factory_task_uid: uid })).toMatchObject({ stage: 'REVIEW' });
  const message = { factory_task_uid: uid, message: 'Thank you.' };
  expect((await factories.call('message_foreman', message)).isError).toBe(false);
  const rows = await service.deps.db.query('SELECT * FROM followups WHERE run_id = $1', [run_id]);
  const sent = JSON.stringify(rows);
  for (const text of ['Done by me.', 'Branch: fix/total', 'Thank you.']) expect(sent).toContain(text);
  expect(await factories.json('complete_task', { run_id })).toMatchObject({ uid, stage: 'COMPLETE' });
  expect((await factories.call('get_task', {})).texts).toEqual([expect.stringContaining('one of them is required')]);
});

test.each([
  [undefined, 'application/json'],
  ['*/*', 'application/json'],
  ['application/json', 'application/json'],
  ['application/json;q=0.9, */*;q=0.1', 'application/json'],
  ['text/event-stream', 'text/event-stream'],
])('a client that accepts %s gets the answer as %s', async (accept, type) => {
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'list_runs', arguments: {} } };
  const answer = await service.request('POST', url, { body, headers: accept === undefined ? {} : { accept } });
  expect([answer.status, answer.headers.get('content-type')?.split(';')[0]]).toEqual([200, type]);
  const message = type === 'application/json' ? answer.text : (/^data: (.*)$/m.exec(answer.text)?.[1] ?? '');
  expect(JSON.parse(message)).toMatchObject({ id: 1, result: { structuredContent: { runs: expect.any(Array) } } });
  const notification = { jsonrpc: '2.0', method: 'notifications/initialized' };
  const sent = await service.request('POST', url, { body: notification, headers: accept ? { accept } : {} });
  expect([sent.status, sent.text]).toEqual([202, '']);
});
