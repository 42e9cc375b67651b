import fc from 'fast-check';
import { afterAll, beforeAll, test } from 'vitest';
import { openTestEngine, type TestEngine } from '../../test/engine.ts';
import { checkInvariants, letTimePass } from '../../test/engine-invariants.ts';
import { operation, perform, type World } from '../../test/engine-operations.ts';

const limit = 3;
let testEngine: TestEngine;
beforeAll(async () => {
  testEngine = await openTestEngine({ limit });
});
afterAll(() => testEngine.close());

test('leaves no run in an illegal state, stuck, running twice or without its end after random interleavings', async () => {
  const runs = Number(process.env.PROPERTY_RUNS ?? 40);
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(operation, { minLength: 1, maxLength: 5 }), { minLength: 5, maxLength: 40 }),
      async (groups) => {
        await testEngine.engine.db.pool.query('DELETE FROM runs; DELETE FROM worker_connections');
        const world: World = {
          runs: [],
          assignments: [],
          connections: [],
          agents: new Map(),
          followups: 0,
          requests: 0,
        };
        for (let n = 0; n < 3; n += 1) world.connections.push(await testEngine.newConnection());
        world.runs.push(await testEngine.newRun(), await testEngine.newRun());
        for (const group of groups) {
          await Promise.all(group.map((op) => perform(testEngine, world, op)));
          await checkInvariants(testEngine, world, limit);
        }
        await letTimePass(testEngine);
        await checkInvariants(testEngine, world, limit);
      },
    ),
    { numRuns: runs, interruptAfterTimeLimit: 240_000, markInterruptAsFailure: false },
  );
}, 300_000);
