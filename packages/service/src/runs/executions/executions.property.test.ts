import fc from 'fast-check';
import { test } from 'vitest';
import { closeAtEnd } from '../../../../../test/support/close-at-end.ts';
import { checkInvariants, letTimePass } from '../../../test/execution-invariants.ts';
import { operation, perform, type World } from '../../../test/execution-operations.ts';
import { openTestExecutions } from '../../../test/executions.ts';

const limit = 3;
const t = closeAtEnd(await openTestExecutions({ limit }));

test('after operations in random order, no run is in an illegal state, stuck, executed twice or without an end event', async () => {
  const runs = Number(process.env.PROPERTY_RUNS ?? 40);
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(operation, { minLength: 1, maxLength: 5 }), { minLength: 5, maxLength: 40 }),
      async (groups) => {
        await t.deps.db.pool.query('DELETE FROM runs; DELETE FROM worker_connections');
        const world: World = {
          runs: [],
          assignments: [],
          connections: [],
          agents: new Map(),
          followups: 0,
          requests: 0,
        };
        for (let n = 0; n < 3; n += 1) world.connections.push(await t.newConnection());
        world.runs.push(await t.newRun(), await t.newRun());
        for (const group of groups) {
          await Promise.all(group.map((op) => perform(t, world, op)));
          await checkInvariants(t, world, limit);
        }
        await letTimePass(t);
        await checkInvariants(t, world, limit);
      },
    ),
    { numRuns: runs, interruptAfterTimeLimit: 240_000, markInterruptAsFailure: false },
  );
}, 300_000);
