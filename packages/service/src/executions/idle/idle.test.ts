import { afterEach, beforeEach, expect, test } from 'vitest';
import { openTestEngine, type TestEngine } from '../../../test/engine.ts';
import { evictIdle } from './idle.ts';

let t: TestEngine;

beforeEach(async () => {
  t = await openTestEngine();
});

afterEach(() => t.close());

/** Executions behind one connection, in these phases, the first one idle the longest. */
async function hold(phases: readonly ('idle' | 'running')[]): Promise<{ connection: string; executions: string[] }> {
  const connection = await t.newConnection();
  const executions: string[] = [];
  for (const [n, phase] of phases.entries()) {
    await t.newRun();
    const assignment = await t.assign(connection);
    if (!assignment) throw new Error('nothing was assigned');
    executions.push(assignment.executionId);
    await t.database.db.pool.query(
      `UPDATE executions SET phase = $2, finished_at = CASE WHEN $2 = 'idle' THEN now() + make_interval(secs => $3) END WHERE id = $1`,
      [assignment.executionId, phase, n],
    );
  }
  return { connection, executions };
}

test('those that have waited longest leave until no more than the limit are left', async () => {
  const { connection, executions } = await hold(['idle', 'running', 'idle', 'idle', 'idle']);
  const [first, , third] = executions;
  expect((await evictIdle(t.engine, connection, 3)).sort()).toEqual([first, third].sort());
});

test('executions at work stay, however many they are', async () => {
  const { connection, executions } = await hold(['running', 'running', 'idle']);
  expect(await evictIdle(t.engine, connection, 1)).toEqual([executions[2]]);
});

test('evictions at the same moment end no more waits than one of them would', async () => {
  const { connection } = await hold(['idle', 'idle', 'idle', 'idle', 'idle', 'idle']);
  const evicted = await Promise.all(Array.from({ length: 8 }, () => evictIdle(t.engine, connection, 4)));
  expect(evicted.flat()).toHaveLength(2);
});
