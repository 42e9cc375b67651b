/** Tests the mode `plan` in real sandboxes: a turn that changes something is stopped. */
import { describe, expect } from 'vitest';
import { runKinds, testsOfKind } from '../support/run-kinds.ts';
import type { System } from '../support/system.ts';

export const describePlanMode = (system: System) =>
  describe('the system (mode plan)', () => {
    describe.each(runKinds.filter(({ kind }) => kind !== 'runbook'))('$kind', ({ kind, config, say }) => {
      const test = testsOfKind(kind);

      test('stops a turn whose command writes a file, and does not stop a turn that only reads', async () => {
        const writes = await system.createRun(say('echo a > made'), { mode: 'plan', config });
        const run = await system.untilEnded(writes);
        expect(run.state, JSON.stringify(run.status_message)).toBe('FAILED');
        expect(run.status_message?.message).toContain('mode plan, in which nothing may change, but made was changed');
        const reads = await system.createRun(say('ls -a'), { mode: 'plan', config });
        expect((await system.untilEnded(reads)).state).toBe('SUCCEEDED');
      });
    });
  });
