/** Tests a run that starts more children at once than may be live. */
import type { RunItem } from '@runyard/contract/runs/runs';
import { describe, expect, test } from 'vitest';
import { runbook } from '../support/run-kinds.ts';
import type { System } from '../support/system.ts';

export const describeFanOut = (system: System) =>
  describe('the system (fan-out)', () => {
    test('children above max_live wait, and more than max_live are never live, although the worker has free slots', async () => {
      const child = 'Part %s.\\n\\n\\140\\140\\140sh\\ntest %s -ne 3\\n\\140\\140\\140\\n';
      const prompt = [
        '```sh',
        `for n in 1 2 3 4 5; do printf "${child}" $n $n | child-run start --title "Part $n" -; done`,
        'child-run await > report || echo some failed',
        '```',
      ].join('\n');
      const child_runs = { enabled: true, max_live: 1 };
      const parent = await system.createRun(prompt, { config: { ...runbook, child_runs } });
      expect((await system.untilEnded(parent)).state).toBe('SUCCEEDED');
      const { runs } = await system.call<{ runs: RunItem[] }>('GET', `/agent/runs?ancestor_run_id=${parent}`);
      expect(runs.map(({ title, state }) => `${title} ${state}`).sort()).toEqual(
        [1, 2, 3, 4, 5].map((n) => `Part ${n} ${n === 3 ? 'FAILED' : 'SUCCEEDED'}`),
      );
      const spans = runs
        .map(({ started_at: from, finished_at: to }) => [Date.parse(from ?? ''), Date.parse(to ?? '')] as const)
        .sort(([a], [b]) => a - b);
      for (const [index, [from]] of spans.entries()) expect(from).toBeGreaterThanOrEqual(spans[index - 1]?.[1] ?? 0);
    });
  });
