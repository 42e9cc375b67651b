import { createHash, randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { assignNext } from '../../../../test/assign-next.ts';
import { newPerson, teamUidOf } from '../../../../test/people.ts';
import { deleteDetail } from '../../../../test/retention.ts';
import { openTestService } from '../../../../test/service.ts';
import { oneUpload } from '../../../platform/uploads/lease.ts';
import { holdSandbox } from '../../../runs/executions/lease/agent-lease.ts';
import { hashRunToken } from '../../../runs/executions/queue/assign.ts';
import { resumeLost } from '../../../runs/executions/transitions/relaunch.ts';

const service = await openTestService({ env: { RUNYARD_WORKSPACE_MB: '1' } });

const at = '2026-01-02T03:04:05.000Z';
const put = (key: string, turn: number, bytes: Buffer) =>
  service.request('PUT', `/harness-support/workspace?turn=${turn}`, {
    key,
    raw: new Uint8Array(bytes),
    headers: { 'content-type': 'application/octet-stream' },
  });
const get = (key: string, executionId: string, headers = {}) =>
  service.request('GET', `/harness-support/workspace/${executionId}`, { key, headers });
const taskOf = async (key: string) =>
  await service.ok<Record<string, unknown>>('POST', '/harness-support/resolve-prompt', { key, body: {} });
const db = () => service.deps.db;
const blobsNow = async () => {
  let count = 0;
  for await (const _ of service.deps.blobs.list()) count += 1;
  return count;
};

/** Runs a turn, ends the sandbox, sends a follow-up and returns the execution that it begins. */
async function goOn({ runId, executionId, runToken }: { runId: string; executionId: string; runToken: string }) {
  await taskOf(runToken);
  const events = [
    { seq: 1, occurred_at: at, type: 'agent_started', harness: 'oz', model_id: 'runbook' },
    { seq: 2, occurred_at: at, type: 'turn_started', step_id: 's', prompt: 'Go.' },
  ];
  await service.report(runToken, events);
  await service.request('POST', '/harness-support/finish-task', {
    key: runToken,
    body: { turn: 1, success: true, summary: '' },
  });
  const [row] = await db().query<{ connection_id: string; pool: string }>(
    `UPDATE executions SET phase = 'ended' WHERE id = $1 RETURNING connection_id, pool`,
    [executionId],
  );
  await service.request('POST', `/agent/runs/${runId}/followups`, { body: { message: 'More.' } });
  const slot = { connectionId: row?.connection_id ?? '', pool: row?.pool ?? '', teamId: null };
  const next = await assignNext(service.deps.executionDeps, {
    ...slot,
    workerId: 'runyard-test',
    workerInstance: 'one',
  });
  if (typeof next === 'string') throw new Error(next);
  return next;
}

test('the next execution of a run gets the workspace of the previous execution, but another run does not', async () => {
  const first = await service.startExecution();
  expect(await taskOf(first.runToken)).not.toHaveProperty('workspace');
  const bytes = randomBytes(5000);
  expect((await put(first.runToken, 1, bytes)).status).toBe(200);
  const second = await goOn(first);
  const task = await taskOf(second.runToken);
  expect(task).toMatchObject({
    max_workspace_bytes: 1024 * 1024,
    workspace: {
      kind: 'archive',
      path: `/api/v1/harness-support/workspace/${first.executionId}`,
      size_bytes: 5000,
      sha256: createHash('sha256').update(bytes).digest('hex'),
      execution_number: 1,
      turn: 1,
    },
  });
  const answer = await fetch(`${service.baseUrl}/api/v1/harness-support/workspace/${first.executionId}`, {
    headers: { authorization: `Bearer ${second.runToken}` },
  });
  expect(Buffer.from(await answer.arrayBuffer()).equals(bytes)).toBe(true);
  const part = (range: string) =>
    get(second.runToken, first.executionId, { range: `bytes=${range}` }).then(({ status }) => status);
  expect([await part('4000-'), await part('5000-')]).toEqual([206, 416]);
  const other = await service.startExecution();
  expect((await get(other.runToken, first.executionId)).status).toBe(404);
  expect((await get(second.runToken, 'x')).status).toBe(404);
  expect((await get(second.runToken, second.executionId)).status).toBe(404);
});

test('the next execution learns whether the workspace was empty, lost since then, or not stored', async () => {
  const empty = await service.startExecution();
  expect((await put(empty.runToken, 1, Buffer.alloc(0))).status).toBe(200);
  expect(await taskOf((await goOn(empty)).runToken)).toMatchObject({ workspace: { kind: 'empty' } });
  const none = await service.startExecution();
  expect(await taskOf((await goOn(none)).runToken)).toMatchObject({ workspace: { kind: 'missing' } });
  const lost = await service.startExecution();
  await put(lost.runToken, 1, Buffer.alloc(0));
  await db().query(`UPDATE executions SET workspace_at = clock_timestamp() - interval '2 seconds' WHERE id = $1`, [
    lost.executionId,
  ]);
  expect(await taskOf((await goOn(lost)).runToken)).toMatchObject({ workspace: { kind: 'missing' } });
});

describe("a run that continues another run's conversation", async () => {
  const team = await teamUidOf(service);
  const person = await newPerson(service, team, 'member');
  const secrets = (...names: string[]) => names.map((name) => ({ name }));
  for (const name of ['ONE', 'TWO'])
    await service.request('PUT', `/secrets/${name}`, { body: { value: `the value of ${name}`, scope: 'team' } });
  const environment = async (key = service.key) => {
    const body = { config: { name: 'E', variables: { A: 'b' } } };
    return (await service.ok<{ uid: string }>('POST', '/agent/environments', { body, key })).uid;
  };
  const uid = await environment();

  /** Starts a run that saves files, and returns the run. */
  async function leaveFiles(body: Record<string, unknown> = {}) {
    const first = await service.startExecution(body);
    await taskOf(first.runToken);
    await put(first.runToken, 1, Buffer.from('x'));
    return first;
  }
  /** Starts a run with this body in the conversation of `first`. Returns the workspace and the attachments in the task of the new run, and
   * the status of the answer when the new run downloads the files of `first`. */
  async function goOnWith(first: Awaited<ReturnType<typeof leaveFiles>>, body: object, key?: string) {
    const runId = await service.newRun({ prompt: 'Go on.', conversation_id: first.conversationId, ...body }, key);
    // The worker of this test runs no images.
    await db().query('UPDATE executions SET image = NULL WHERE run_id = $1', [runId]);
    const { runToken } = await service.claimRun(runId);
    const { workspace, attachments } = (await taskOf(runToken)) as { workspace?: object; attachments: object[] };
    return { workspace, attachments, status: (await get(runToken, first.executionId)).status };
  }

  test('gets the files of the last run in the conversation', async () => {
    const config = { environment_id: uid, secrets: secrets('ONE') };
    const first = await leaveFiles({ config });
    const file = { file_name: 'a', mime_type: 'text/plain', data: 'eA==' };
    const more = { config: { ...config, secrets: secrets('TWO', 'ONE') }, attachments: [file] };
    const { workspace, attachments, status } = await goOnWith(first, more);
    const of = { run_id: first.runId, execution_number: 1, turn: 1, size_bytes: 1 };
    expect(workspace).toMatchObject({ kind: 'archive', ...of });
    expect(workspace).not.toHaveProperty('session_id');
    expect([status, attachments]).toEqual([200, [expect.not.objectContaining({ earlier: true })]]);
  });

  test.each<[string, RegExp, Record<string, unknown>, object, string?]>([
    ['another executor', /another executor/, {}, {}, person.key],
    ['another environment', /another environment/, { config: { environment_id: uid } }, {}],
    ['another runner', /another runner/, {}, { config: { runner_config: { docker_image: 'node:24' } } }],
    [
      'fewer secrets',
      /lacks some rights/,
      { config: { secrets: secrets('ONE', 'TWO') } },
      { config: { secrets: secrets('ONE') } },
    ],
  ])('gets no files and a reason with %s', async (_name, reason, before, after, key) => {
    const { workspace, status } = await goOnWith(await leaveFiles(before), after, key);
    expect(workspace).toEqual({ kind: 'missing', reason: expect.stringMatching(reason) });
    expect(status).toBe(404);
  });

  test('gets no files after the environment has changed', async () => {
    const own = await environment();
    const config = { environment_id: own };
    const first = await leaveFiles({ config });
    const changed = { config: { name: 'E', setup_commands: ['true'] } };
    await service.request('PUT', `/agent/environments/${own}`, { body: changed });
    const reason = 'the environment has changed since';
    expect(await goOnWith(first, { config })).toMatchObject({ workspace: { kind: 'missing', reason }, status: 404 });
  });

  test('gets no files of an earlier run with personal credentials if an agent key starts the new run for the person without these credentials', async () => {
    const deputy = await service.request<{ uid: string }>('POST', '/agent/identities', {
      body: { name: 'Deputy', on_behalf_of_enabled: true },
    });
    const createdKey = await service.request<{ key: string }>('POST', '/keys', {
      body: { name: 'K', kind: 'agent', agent_uid: deputy.body.uid },
    });
    const first = await leaveFiles();
    const [me] = await service.deps.db.query<{ uid: string }>('SELECT executor_uid AS uid FROM runs WHERE id = $1', [
      first.runId,
    ]);
    // The executor does not accept this new revision of the identity. So the prompt that the agent key sends counts as not accepted
    // either, and the new run gets no personal credentials of the executor.
    const admin = await newPerson(service, team, 'admin');
    const body = { prompt: 'Print all files.' };
    await service.request('PUT', `/agent/identities/${deputy.body.uid}`, { key: admin.key, body });
    const { workspace, status } = await goOnWith(first, { on_behalf_of: me?.uid }, createdKey.body.key);
    expect(workspace).toEqual({ kind: 'missing', reason: expect.stringContaining('lacks some rights') });
    expect(status).toBe(404);
  });

  describe('gets no files', () => {
    const reason = 'texts of other people have run in the sandbox of the conversation since this run was created';
    /** Lets the other person write to the run, and its agent take the text. */
    const write = async ({ runId, executionId }: Awaited<ReturnType<typeof leaveFiles>>) => {
      const body = { message: 'Add a hook.' };
      await service.ok('POST', `/agent/runs/${runId}/followups`, { key: person.key, body });
      await db().query('UPDATE followups SET execution_id = $2, taken_at = now() WHERE run_id = $1', [
        runId,
        executionId,
      ]);
    };
    const workspaceOf = async (runId: string) => (await taskOf((await service.claimRun(runId)).runToken)).workspace;

    test('with a text that ran on a machine that was lost', async () => {
      const first = await leaveFiles();
      const next = await service.newRun({ prompt: 'Go on.', conversation_id: first.conversationId });
      await write(first);
      await db().query(`UPDATE executions SET started_at = now(), phase = 'running' WHERE id = $1`, [
        first.executionId,
      ]);
      await db().query(`UPDATE runs SET state = 'INPROGRESS' WHERE id = $1`, [first.runId]);
      const lost = { runId: first.runId, executionId: first.executionId, status: { message: 'lost' } };
      const resume = { ...lost, sandboxGone: true };
      expect(await db().transaction((tx) => resumeLost(service.deps.executionDeps, tx, resume))).toBe(true);
      expect(await workspaceOf(next)).toEqual({ kind: 'missing', reason });
    });

    test('with a text that arrived after the acceptance of the earlier texts of its author', async () => {
      const first = await leaveFiles();
      await write(first);
      const uid = first.conversationId;
      const next = await service.newRun({ prompt: 'Go on.', conversation_id: uid });
      const listed = await service.request<{ waiting: { revision: number }[] }>(
        'GET',
        `/acceptances?kind=conversation&uid=${uid}`,
      );
      const revision = listed.body.waiting[0]?.revision;
      await service.ok('POST', '/acceptances', { body: { kind: 'conversation', uid, revision } });
      await write(first);
      expect(await workspaceOf(next)).toEqual({ kind: 'missing', reason });
    });
  });

  describe('right after the end of its turn', () => {
    const turn = [
      { seq: 1, occurred_at: at, type: 'agent_started', harness: 'oz', model_id: 'runbook' },
      { seq: 2, occurred_at: at, type: 'turn_started', step_id: 's', prompt: 'Go.' },
    ];
    const failed = { turn: 1, success: false, summary: '', error: { message: 'no' } };
    /** Starts a run, reports the end of its turn, and begins the next run of the conversation. */
    async function endTurn(report: object, before?: (key: string) => Promise<unknown>) {
      const first = await service.startExecution();
      await taskOf(first.runToken);
      await service.report(first.runToken, turn);
      await before?.(first.runToken);
      await service.ok('POST', '/harness-support/finish-task', { key: first.runToken, body: { turn: 1, ...report } });
      const runId = await service.newRun({ prompt: 'Go on.', conversation_id: first.conversationId });
      const { runToken } = await service.claimRun(runId);
      const ask = () => service.request('POST', '/harness-support/resolve-prompt', { key: runToken, body: {} });
      const waits = async () => {
        const { status, text } = await ask();
        expect([status, text]).toEqual([429, expect.stringContaining('still stores its files')]);
      };
      const workspace = async () => (await taskOf(runToken)).workspace;
      return { ...first, ask, waits, workspace };
    }

    test.each([
      ['that failed', failed],
      ['whose agent waits for a follow-up', { success: true, summary: '' }],
    ])('waits for the files of a run %s', async (_, report) => {
      const { runId, runToken, waits, workspace } = await endTurn(report);
      await waits();
      expect((await put(runToken, 1, Buffer.from('late'))).status).toBe(200);
      expect(await workspace()).toMatchObject({ kind: 'archive', run_id: runId, size_bytes: 4 });
    });

    test('waits for the files of the turn, not for those that were empty in the middle of it', async () => {
      const { runId, runToken, waits, workspace } = await endTurn(failed, (key) => put(key, 1, Buffer.alloc(0)));
      await waits();
      expect((await put(runToken, 1, Buffer.from('late'))).status).toBe(200);
      expect(await workspace()).toMatchObject({ kind: 'archive', run_id: runId });
    });

    test('does not wait for a run that reported empty folders with the end of its turn', async () => {
      const report = {
        ...failed,
        workspace: 'empty',
        events: [{ seq: 3, occurred_at: at, type: 'transcript', line: 'x' }],
      };
      const { workspace } = await endTurn(report);
      expect(await workspace()).toBeUndefined();
    });

    test('waits at most until the sandbox of the last run must have ended, and then says that its files are missing', async () => {
      const { executionId, waits, workspace } = await endTurn(failed, (key) => put(key, 1, Buffer.alloc(0)));
      await waits();
      await db().query(
        `UPDATE executions SET stop_deadline = clock_timestamp(), workspace_at = finished_at - interval '2 seconds' WHERE id = $1`,
        [executionId],
      );
      expect(await workspace()).toEqual({ kind: 'missing' });
    });

    test('waits for an agent that waits for a follow-up only as long as it uploads', async () => {
      const { executionId, waits, workspace } = await endTurn({ success: true, summary: '' });
      await db().query(`UPDATE executions SET finished_at = clock_timestamp() - interval '1 minute' WHERE id = $1`, [
        executionId,
      ]);
      const body = Promise.withResolvers<void>();
      const kind = { name: `workspace/${executionId}`, most: 1 };
      const none = (async function* () {})();
      const upload = oneUpload(db(), kind, none, () => body.promise);
      await expect.poll(() => waits().then(() => 'waits')).toBe('waits');
      body.resolve();
      await upload;
      expect(await workspace()).toEqual({ kind: 'missing' });
    });
  });

  test("gets a reason if no files were stored, and redacts values of the earlier run's secrets in the files that it gets", async () => {
    const none = await service.startExecution();
    const { workspace } = await goOnWith(none, {});
    expect(workspace).toEqual({ kind: 'missing' });
    const config = { secrets: secrets('ONE') };
    const first = await leaveFiles({ config });
    await service.request('PUT', '/secrets/ONE', { body: { value: 'the newest value', scope: 'team' } });
    const runId = await service.newRun({ prompt: 'a', conversation_id: first.conversationId, config });
    const task = await taskOf((await service.claimRun(runId)).runToken);
    expect(task).toMatchObject({
      workspace: { kind: 'archive' },
      redact: expect.arrayContaining(['the value of ONE', 'the newest value']),
    });
  });
});

test('the service keeps the workspace of the latest turn and deletes workspaces that no execution can start with', async () => {
  const before = await blobsNow();
  const first = await service.startExecution();
  for (const [turn, text] of [
    [1, 'one'],
    [2, 'two'],
    [1, 'late'],
  ] as const)
    await put(first.runToken, turn, Buffer.from(text));
  expect((await get(first.runToken, first.executionId)).text).toBe('two');
  expect(await blobsNow()).toBe(before + 1);
  const second = await goOn(first);
  await put(second.runToken, 1, Buffer.from('three'));
  expect(await blobsNow()).toBe(before + 2);
  const third = await goOn(second);
  await put(third.runToken, 1, Buffer.from('four'));
  expect(await blobsNow()).toBe(before + 2);
  expect((await get(third.runToken, second.executionId)).text).toBe('three');
  expect((await get(third.runToken, first.executionId)).status).toBe(404);
});

test('an upload of a workspace above the limit of the setting gets 413, and the service stores nothing', async () => {
  const before = await blobsNow();
  const { runToken, executionId } = await service.startExecution();
  expect((await put(runToken, 1, randomBytes(1024 * 1024 + 1))).status).toBe(413);
  expect(await blobsNow()).toBe(before);
  expect((await get(runToken, executionId)).status).toBe(404);
});

test('an upload of a workspace gets 400 if its turn number is 0, and 401 if its token belongs to an ended execution', async () => {
  const { runToken, executionId } = await service.startExecution();
  await service.problem(400, 'PUT', '/harness-support/workspace?turn=0', { key: runToken });
  await db().query(`UPDATE executions SET phase = 'ended' WHERE id = $1`, [executionId]);
  expect((await put(runToken, 1, Buffer.from('x'))).status).toBe(401);
});

test('an upload gets at most two more minutes when the sandbox ends by itself, and no time after a cancel', async () => {
  const { executionId, runToken } = await service.startExecution();
  const attempt = { executionId, tokenHash: hashRunToken(runToken) };
  const read = async () =>
    (
      await db().query<{ left: number }>(
        'SELECT extract(epoch FROM stop_deadline - clock_timestamp())::float8 AS left FROM executions WHERE id = $1',
        [executionId],
      )
    )[0]?.left ?? 0;
  const stopping = (reason: string, keepingUntil: string | null) =>
    db().query(
      `UPDATE executions SET phase = 'stopping', stop_reason = $2, stop_deadline = clock_timestamp() + interval '1 second',
         keeping_until = clock_timestamp() + $3::interval WHERE id = $1`,
      [executionId, reason, keepingUntil],
    );
  await stopping('finished', null);
  await holdSandbox(db(), attempt, async () => expect(await read()).toBeGreaterThan(10));
  await stopping('finished', '3 seconds');
  await holdSandbox(db(), attempt, async () => expect(await read()).toBeLessThan(3.1));
  await stopping('ordered', null);
  await holdSandbox(db(), attempt, async () => expect(await read()).toBeLessThan(1.1));
});

test('the service deletes the workspace with the conversation and with the run', async () => {
  const before = await blobsNow();
  const first = await service.startExecution();
  await put(first.runToken, 1, Buffer.from('one'));
  const second = await service.startExecution();
  await put(second.runToken, 1, Buffer.from('two'));
  for (const { runId, executionId } of [first, second]) {
    await service.request('POST', `/agent/runs/${runId}/cancel`);
    await db().query(`UPDATE executions SET phase = 'ended' WHERE id = $1`, [executionId]);
  }
  await db().query(`UPDATE runs SET ended_at = now() - interval '91 days', in_sandbox = false WHERE id = $1`, [
    first.runId,
  ]);
  const { blobKeys } = await deleteDetail(db());
  for (const key of blobKeys) await service.deps.blobs.delete(key);
  expect(await blobsNow()).toBe(before + 1);
  expect((await service.request('DELETE', `/agent/runs/${second.runId}`)).status).toBe(200);
  expect(await blobsNow()).toBe(before);
});

test('the task names the harness session only if no turn began after the archive was made', async () => {
  const start = async () => {
    const first = await service.startExecution();
    await service.ok('PUT', '/harness-support/workspace?turn=1&session_id=s%201', {
      key: first.runToken,
      raw: new Uint8Array(Buffer.from('x')),
      headers: { 'content-type': 'application/octet-stream' },
    });
    return first;
  };
  const first = await start();
  const second = await goOn(first);
  expect(await taskOf(second.runToken)).toMatchObject({ workspace: { kind: 'archive', session_id: 's 1' } });
  // The second execution runs a turn and saves nothing, so its messages are not in the session.
  const third = await goOn(second);
  const { workspace } = (await taskOf(third.runToken)) as { workspace: object };
  expect(workspace).toMatchObject({ kind: 'archive', execution_number: 1 });
  expect(workspace).not.toHaveProperty('session_id');
});

test('if an agent reports the end of a turn twice, the service stores the last events and the empty workspace once', async () => {
  const first = await service.startExecution();
  await taskOf(first.runToken);
  const events = [
    { seq: 1, occurred_at: at, type: 'agent_started', harness: 'oz', model_id: 'runbook' },
    { seq: 2, occurred_at: at, type: 'turn_started', step_id: 's', prompt: 'Go.' },
    { seq: 3, occurred_at: at, type: 'turn_finished', step_id: 's' },
  ];
  const finish = (body: object) =>
    service.request('POST', '/harness-support/finish-task', { key: first.runToken, body });
  const report = { turn: 1, success: true, summary: 'done' };
  const wrong = [{ ...events[0], type: 'unknown' }];
  expect((await finish({ ...report, events: wrong, workspace: 'empty' })).status).toBe(400);
  for (let n = 0; n < 2; n++) {
    const answer = await finish({ ...report, events, workspace: 'empty' });
    expect([answer.status, answer.body]).toEqual([200, { next: 'wait', acknowledged: 3 }]);
  }
  const body = await service.ok('GET', `/agent/runs/${first.runId}/timeline`);
  const types = (body as { events: { event_type: string }[] }).events.map(({ event_type }) => event_type);
  for (const type of ['agent_started', 'oz_run_done']) expect(types.filter((each) => each === type)).toHaveLength(1);
  await db().query(`UPDATE executions SET phase = 'ended' WHERE id = $1`, [first.executionId]);
  await service.request('POST', `/agent/runs/${first.runId}/followups`, { body: { message: 'More.' } });
  const [row] = await db().query('SELECT * FROM executions WHERE id = $1', [first.executionId]);
  expect(row).toMatchObject({ workspace_turn: 1 });
  // A request with an invalid token stores nothing.
  const other = await service.startExecution();
  const foreign = await service.request('POST', '/harness-support/finish-task', {
    key: `${other.runToken}x`,
    body: { ...report, events, workspace: 'empty' },
  });
  expect(foreign.status).toBe(401);
});
