import { randomUUIDv7 } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';
import { type RunSubmission, submitRun } from './submit.ts';

const service = await openTestService();
const { db } = service.deps;

const submission = (more: Partial<RunSubmission> = {}): RunSubmission => ({
  actor: { teamId: service.teamId, creator: { kind: 'user', uid: 'tester' } },
  request: { prompt: `Do ${randomUUIDv7()}.` },
  source: 'SCHEDULED_AGENT',
  ...more,
});

/** Counts the rows of the run, its executions, events and files. */
async function countRows(runId: string): Promise<{ runs: number; executions: number; events: number; files: number }> {
  const [row] = await db.query<{ runs: number; executions: number; events: number; files: number }>(
    `SELECT (SELECT count(*) FROM runs WHERE id = $1) AS runs, (SELECT count(*) FROM executions WHERE run_id = $1) AS executions,
       (SELECT count(*) FROM run_events WHERE run_id = $1) AS events, (SELECT count(*) FROM attachments WHERE run_id = $1) AS files`,
    [runId],
  );
  if (!row) throw new Error('no counts');
  return row;
}

async function submitted(wanted: RunSubmission): Promise<string> {
  const outcome = await submitRun(service.deps, wanted);
  if (outcome.kind !== 'submitted') throw new Error(`the run was not created: ${JSON.stringify(outcome)}`);
  return outcome.response.run_id;
}

const files = [{ file_name: 'a.txt', mime_type: 'text/plain', data: Buffer.from('hello').toString('base64') }];
const whole = { runs: 1, executions: 1, events: 1, files: 1 };
const nothing = { runs: 0, executions: 0, events: 0, files: 0 };

describe("in the caller's transaction", () => {
  test('commits the runs together with its other rows', async () => {
    const ids = await db.transaction(async (tx) => {
      const request = { prompt: 'Do it.', attachments: files };
      const two = [await submitted(submission({ tx, request })), await submitted(submission({ tx, request }))];
      // Other transactions see no row before the commit.
      expect(await Promise.all(two.map(countRows))).toEqual([nothing, nothing]);
      return two;
    });
    expect(await Promise.all(ids.map(countRows))).toEqual([whole, whole]);
  });

  test('leaves nothing of a run when it rolls back', async () => {
    let runId = '';
    const rolledBack = db.transaction(async (tx) => {
      runId = await submitted(submission({ tx, request: { prompt: 'Do it.', attachments: files } }));
      throw new Error('the delivery could not be written');
    });
    await expect(rolledBack).rejects.toThrow('the delivery could not be written');
    expect(await countRows(runId)).toEqual(nothing);
  });

  test('stays usable after a refused submission', async () => {
    const runId = await db.transaction(async (tx) => {
      const refused = await submitRun(service.deps, submission({ tx, request: { prompt: ' ' } }));
      expect(refused).toMatchObject({ kind: 'invalid', faults: [{ path: 'prompt' }] });
      return await submitted(submission({ tx }));
    });
    expect((await countRows(runId)).runs).toBe(1);
  });

  test('creates one run for a request that is repeated, with the same answer', async () => {
    const once = { teamId: service.teamId, principal: 'schedule', key: randomUUIDv7(), requestHash: Buffer.alloc(32) };
    const submitOnce = () => db.transaction((tx) => submitted(submission({ tx, once })));
    const [first, second] = await Promise.all([submitOnce(), submitOnce()]);
    expect(second).toBe(first);
    expect(await submitOnce()).toBe(first);
    const other = { ...once, requestHash: Buffer.alloc(32, 1) };
    expect(await submitRun(service.deps, submission({ once: other }))).toEqual({ kind: 'idempotency_conflict' });
  });
});

test('gives the run the source and the actor of its submission', async () => {
  const runId = await submitted(submission());
  const run = await service.request<{ source: string; creator: { uid: string } }>('GET', `/agent/runs/${runId}`);
  expect(run.body).toMatchObject({ source: 'SCHEDULED_AGENT', creator: { uid: 'tester' } });
});

test('refuses to repeat a run that the team does not have', async () => {
  const request = { rerunOf: randomUUIDv7(), instead: {} };
  expect(await submitRun(service.deps, submission({ request }))).toEqual({ kind: 'no_such_run' });
});
