import { randomUUIDv7 } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { prepareRun } from './prepare.ts';
import { type SingleSubmission, submitRun, writeRuns } from './submit.ts';

const service = await openTestService();
const { db } = service.deps;

const submission = (more: Partial<SingleSubmission> = {}): SingleSubmission => ({
  actor: { teamId: service.teamId, creator: { kind: 'user', uid: 'tester' } },
  request: { prompt: `Do ${randomUUIDv7()}.` },
  source: 'SCHEDULED_AGENT',
  ...more,
});

async function countRows(runId: string): Promise<{ runs: number; executions: number; events: number; files: number }> {
  const [row] = await db.query<{ runs: number; executions: number; events: number; files: number }>(
    `SELECT (SELECT count(*) FROM runs WHERE id = $1) AS runs, (SELECT count(*) FROM executions WHERE run_id = $1) AS executions,
       (SELECT count(*) FROM run_events WHERE run_id = $1) AS events, (SELECT count(*) FROM attachments WHERE run_id = $1) AS files`,
    [runId],
  );
  if (!row) throw new Error('no counts');
  return row;
}

async function submitted(wanted: SingleSubmission): Promise<string> {
  const outcome = await submitRun(service.deps, wanted);
  if (outcome.kind !== 'submitted') throw new Error(`the run was not created: ${JSON.stringify(outcome)}`);
  return outcome.response.run_id;
}

const files = [{ file_name: 'a.txt', mime_type: 'text/plain', data: Buffer.from('hello').toString('base64') }];
const withFile = () => submission({ request: { prompt: 'Do it.', attachments: files } });
const whole = { runs: 1, executions: 1, events: 1, files: 1 };
const nothing = { runs: 0, executions: 0, events: 0, files: 0 };

/** Prepares the runs and writes them together. Returns the ids of the runs. */
async function written(tx: Queryable, ...wanted: readonly SingleSubmission[]): Promise<string[]> {
  const prepared = await Promise.all(
    wanted.map(async (each) => {
      const outcome = await prepareRun(service.deps, each, tx);
      if (outcome.kind !== 'prepared') throw new Error(`the run was refused: ${JSON.stringify(outcome)}`);
      return outcome;
    }),
  );
  // Preparing writes no row, so the runs must not be in the tables yet.
  for (const { run } of prepared) expect((await tx.query('SELECT FROM runs WHERE id = $1', [run.id])).length).toBe(0);
  const responses = await writeRuns(tx, prepared);
  expect(responses.map(({ run_id: id }) => id)).toEqual(prepared.map(({ run }) => run.id));
  return responses.map(({ run_id: id }) => id);
}

describe('writing runs in a transaction of the caller', () => {
  test('makes the runs visible together with the other rows of the caller', async () => {
    const ids = await db.transaction(async (tx) => {
      const two = await written(tx, withFile(), withFile());
      // Before the commit, other transactions must not see the rows.
      expect(await Promise.all(two.map(countRows))).toEqual([nothing, nothing]);
      return two;
    });
    expect(await Promise.all(ids.map(countRows))).toEqual([whole, whole]);
  });

  test('leaves no rows of a run when the transaction rolls back', async () => {
    let ids: readonly string[] = [];
    const rolledBack = db.transaction(async (tx) => {
      ids = await written(tx, withFile());
      throw new Error('the delivery could not be written');
    });
    await expect(rolledBack).rejects.toThrow('the delivery could not be written');
    expect(await Promise.all(ids.map(countRows))).toEqual([nothing]);
  });

  test('fails for a child run that was not admitted', async () => {
    const parent = await submitted(submission());
    const child = submission({ request: { prompt: 'Do it.', parent_run_id: parent } });
    await expect(db.transaction((tx) => written(tx, child))).rejects.toThrow('only writeRun checks its limits');
    expect(await submitted(child)).not.toBe(parent);
  });

  test('is possible after a refused submission in the same transaction', async () => {
    const [runId = ''] = await db.transaction(async (tx) => {
      const refused = await prepareRun(service.deps, submission({ request: { prompt: ' ' } }), tx);
      expect(refused).toMatchObject({ kind: 'invalid', faults: [{ path: 'prompt' }] });
      return await written(tx, submission());
    });
    expect((await countRows(runId)).runs).toBe(1);
  });
});

test('a repeated request creates only one run, and gets the same answer', async () => {
  const once = { teamId: service.teamId, principal: 'schedule', key: randomUUIDv7(), requestHash: Buffer.alloc(32) };
  const submitOnce = () => submitted(submission({ once }));
  const [first, second] = await Promise.all([submitOnce(), submitOnce()]);
  expect(second).toBe(first);
  expect(await submitOnce()).toBe(first);
  const other = { ...once, requestHash: Buffer.alloc(32, 1) };
  expect(await submitRun(service.deps, submission({ once: other }))).toEqual({ kind: 'idempotency_conflict' });
});

test('a run has the source and the actor of its submission', async () => {
  const runId = await submitted(submission());
  const run = await service.request<{ source: string; creator: { uid: string } }>('GET', `/agent/runs/${runId}`);
  expect(run.body).toMatchObject({ source: 'SCHEDULED_AGENT', creator: { uid: 'tester' } });
});

test('the service refuses to repeat a run that the team does not have', async () => {
  const request = { rerunOf: randomUUIDv7(), instead: {} };
  expect(await submitRun(service.deps, submission({ request }))).toEqual({ kind: 'no_such_run' });
});
