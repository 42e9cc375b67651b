/** Tests requests of an earlier attempt that were authenticated while its token was valid, but arrive when another attempt has the execution. */
import { beforeEach, describe, expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';
import { stalledRequests } from '../../../../test/stalled.ts';
import { type Assignment, hashRunToken } from '../../../runs/executions/queue/assign.ts';
import { claim, requeue } from '../../../runs/executions/transitions/transitions.ts';

const service = await openTestService();
const { db } = service.deps;
const at = '2026-01-02T03:04:05.000Z';

const { stall, authenticated } = stalledRequests(service);

let first: Assignment;
let others: string[] = [];
beforeEach(async () => {
  first = await service.startExecution({ mode: 'orchestrate' }, 'PENDING');
  others = [await service.newRun({ parent_run_id: first.runId })];
});

/** Assigns the execution to another worker, because the first worker does not claim it in time. */
async function handOutAgain(upTo: 'PENDING' | 'CLAIMED' = 'CLAIMED'): Promise<Assignment> {
  const { runId, executionId, assignmentId } = first;
  expect(await requeue(db, { runId, executionId, args: { assignment_id: assignmentId } })).toBe(true);
  const second = await service.claimRun(runId, upTo);
  expect([second.executionId, second.runToken === first.runToken]).toEqual([executionId, false]);
  return second;
}

/** Returns all data of a run that a request of its agent can change. */
async function recordOf(runId: string): Promise<Record<string, unknown> | undefined> {
  const [record] = await db.query<Record<string, unknown>>(
    `SELECT r.state, r.event_seq, e.phase, e.last_agent_seq, e.finished_turns, e.memory_blob, e.memory_turn, e.workspace_blob,
       e.workspace_turn, e.lease_until, e.awaiting_until, e.transcript_bytes,
       (SELECT count(*) FROM artifacts WHERE run_id = r.id) AS artifacts, (SELECT count(*) FROM snapshots WHERE run_id = r.id) AS snapshots,
       (SELECT array_agg(c.state ORDER BY c.id) FROM runs c WHERE c.parent_run_id = r.id) AS children,
       (SELECT count(*) FROM followups f WHERE f.run_id = ANY($2::uuid[])) AS messages,
       (SELECT count(*) FROM followups f WHERE f.run_id = r.id AND f.execution_id IS NOT NULL) AS taken
     FROM runs r JOIN executions e ON e.id = r.current_execution_id WHERE r.id = $1`,
    [runId, others],
  );
  return record;
}

const bytes = 'application/octet-stream';
const step = { occurred_at: at, type: 'setup_step_started', step_id: 's', kind: 'clone', name: 'n' };

describe('a stalled request of an earlier attempt changes nothing and is refused', () => {
  interface Stalled {
    readonly name: string;
    readonly status: number;
    readonly method: 'POST' | 'PUT';
    readonly path: string;
    body(): string;
    readonly type?: string;
  }
  const post = (path: string, status: number, body: () => object): Stalled => ({
    name: `${path} ${Object.keys(body())}`,
    status,
    method: 'POST',
    path,
    body: () => `${JSON.stringify(body())} `,
  });
  const put = (path: string): Stalled => ({
    name: path,
    status: 401,
    method: 'PUT',
    path,
    body: () => 'some bytes',
    type: bytes,
  });
  const plan = { artifact_type: 'PLAN', data: { content: 'x' } };

  test.each([
    post('/events', 401, () => ({ events: [{ seq: 1, ...step }] })),
    post('/finish-task', 401, () => ({ success: true, summary: 'done' })),
    post('/finish-task', 401, () => ({ success: false, summary: 'no', turn: 2 })),
    post('/report-artifact', 401, () => plan),
    post('/upload-snapshot', 401, () => ({ turn: 1, files: [] })),
    put('/memory?turn=1'),
    put('/workspace?turn=1'),
    post('/resolve-prompt', 401, () => ({})),
    post('/child-runs', 409, () => ({ prompt: 'a' })),
    post('/messages', 409, () => ({ run_id: others[0], message: 'a' })),
  ])('$method $name', async ({ status, method, path, body, type }) => {
    await service.request('POST', `/agent/runs/${first.runId}/followups`, { body: { message: 'And this.' } });
    const stalled = await stall(method, `/harness-support${path}`, first.runToken, body(), type);
    await handOutAgain();
    const before = await recordOf(first.runId);
    const answer = await stalled.goOn();
    expect(answer.status, answer.text).toBe(status);
    expect(await recordOf(first.runId)).toEqual(before);
  });

  test.each([
    ['superseded', 401, () => handOutAgain()],
    ['stopped', 409, () => service.request('POST', `/agent/runs/${first.runId}/cancel`)],
  ] as const)('/resolve-prompt of a run without follow-ups, whose attempt is %s', async (_how, status, end) => {
    const { runId, executionId, assignmentId } = first;
    const args = { assignment_id: assignmentId, lease_seconds: 90 };
    if (status === 409) expect(await claim(db, { runId, executionId, args })).toBe(true);
    const stalled = await stall('POST', '/harness-support/resolve-prompt', first.runToken, '{} ', 'application/json');
    await end();
    const before = await recordOf(first.runId);
    const answer = await stalled.goOn();
    expect(answer.status, answer.text).toBe(status);
    expect(await recordOf(first.runId)).toEqual(before);
  });

  test('a wait at the inbox by an earlier attempt ends with 401 and without a follow-up', async () => {
    const waiting = await authenticated(() =>
      service.request('GET', '/harness-support/inbox?wait_ms=60000', { key: first.runToken }),
    );
    // Change only the token. A new assignment would first return the execution to the queue, and the wait could end for that reason.
    const token = `ryr_${'x'.repeat(43)}`;
    const given = [first.executionId, hashRunToken(token)];
    await db.query('UPDATE executions SET token_hash = $2, awaits_followup = true WHERE id = $1', given);
    await service.request('POST', `/agent/runs/${first.runId}/followups`, { body: { message: 'And this.' } });
    expect((await waiting.answer).status).toBe(401);
    const body = await service.ok('GET', '/harness-support/inbox', { key: token });
    expect(body).toMatchObject({ items: [{ type: 'follow_up', message: 'And this.' }] });
  });

  test('a wait for children by an earlier attempt neither frees the slot of the next attempt nor changes the time until which the next attempt waits', async () => {
    const child = others[0] ?? '';
    const path = `/harness-support/child-runs/${child}?wait_ms=60000`;
    const waiting = await authenticated(() => service.request('GET', path, { key: first.runToken }));
    const second = await handOutAgain();
    const mark = "UPDATE executions SET awaiting_until = now() + interval '1 hour' WHERE id = $1";
    await db.query(mark, [second.executionId]);
    const marked = await recordOf(first.runId);
    await service.request('POST', `/agent/runs/${child}/cancel`);
    await waiting.answer;
    expect(await recordOf(first.runId)).toMatchObject({ awaiting_until: marked?.awaiting_until });
  });

  test('the cancel of a PENDING child by an earlier attempt is refused when the child is claimed', async () => {
    const child = await service.claimRun(others[0] ?? '', 'PENDING');
    const path = `/harness-support/child-runs/${child.runId}/cancel`;
    const cancelling = await authenticated(() => service.request('POST', path, { key: first.runToken }));
    await handOutAgain();
    await service.begin(child.runToken);
    expect((await cancelling.answer).status).toBe(401);
    expect(await recordOf(first.runId)).toMatchObject({ children: ['INPROGRESS'] });
  });

  test('the bytes of an artifact and of a snapshot file that an earlier attempt announced are refused', async () => {
    const key = first.runToken;
    const reported = await service.request<{ upload_url: string }>('POST', '/harness-support/report-artifact', {
      key,
      body: { artifact_type: 'FILE', data: { filename: 'a' } },
    });
    const snapshot = await service.request<{ files: { upload_url: string }[] }>(
      'POST',
      '/harness-support/upload-snapshot',
      { key, body: { turn: 1, files: [{ filename: 'a.patch', size_bytes: 1 }] } },
    );
    await handOutAgain();
    const before = await recordOf(first.runId);
    for (const url of [reported.body.upload_url, snapshot.body.files[0]?.upload_url ?? ''])
      await service.problem(404, 'PUT', url, { key: null, raw: 'x', headers: { 'content-type': bytes } });
    expect(await recordOf(first.runId)).toEqual(before);
    expect((await service.ok<{ artifacts?: unknown[] }>('GET', `/agent/runs/${first.runId}`)).artifacts ?? []).toEqual(
      [],
    );
  });
});

test('the next attempt begins its events with 1 again, and its transcript has no text of the earlier attempt', async () => {
  const line = (seq: number, text: string) => ({
    seq,
    occurred_at: at,
    type: 'transcript',
    line: JSON.stringify(text),
  });
  const send = (key: string, events: object[]) => service.report(key, events);
  const half = 'some text';
  const sent = await send(first.runToken, [
    { seq: 1, ...step },
    line(2, 'early'),
    {
      seq: 3,
      occurred_at: at,
      type: 'text',
      step_id: 's',
      message_id: 'm',
      role: 'assistant',
      text: `${half} ${first.runToken.slice(0, 9)}`,
    },
  ]);
  expect(sent.body).toEqual({ acknowledged: 3 });
  await service.request('POST', '/harness-support/finish-task', {
    key: first.runToken,
    body: { success: true, summary: '' },
  });
  const second = await handOutAgain();
  const started = { seq: 1, occurred_at: at, type: 'agent_started', harness: 'oz', model_id: 'runbook' };
  expect((await send(second.runToken, [started, line(2, 'late')])).body).toEqual({ acknowledged: 2 });
  expect((await send(second.runToken, [line(3, 'later')])).body).toEqual({ acknowledged: 3 });
  const [transcript] = await db.query(
    `SELECT string_agg(lines, '' ORDER BY agent_seq) AS lines, (SELECT redaction_tails FROM executions WHERE id = $1) AS tails
     FROM transcript_chunks WHERE execution_id = $1`,
    [second.executionId],
  );
  expect(transcript).toEqual({ lines: '"late"\n"later"\n', tails: {} });
  const finish = { key: second.runToken, body: { success: true, summary: 'done', turn: 1 } };
  expect(await service.ok('POST', '/harness-support/finish-task', finish)).toEqual({ next: 'wait' });
  expect(await recordOf(first.runId)).toMatchObject({ state: 'SUCCEEDED', finished_turns: 1 });
});
