import { expect, test } from 'vitest';
import { costOf } from './child-runs.tsx';
import { limitsOf } from './facts.tsx';
import { deniedOf } from './network.tsx';
import { sandboxLimits } from './sandbox.tsx';
import { applyCommand } from './workspace.tsx';

test('the cost of child runs names the runs whose cost is not known', () => {
  const priced = { request_usage: { inference_cost_usd: 1.5 } };
  expect(costOf([priced, priced, {}])).toBe('$3.00');
  expect(costOf([priced, { request_usage: {} }])).toBe('$1.50, without 1 run of unknown cost');
  expect(costOf([{ request_usage: {} }])).toBe('cost not known');
});

test('limits of a sandbox and of a run are words', () => {
  expect(sandboxLimits({ memory_mb: 4096, processes: 512, disk_mb: 8192 })).toBe(
    '4.0 GB memory, 512 processes, 8.0 GB disk',
  );
  expect(limitsOf({ max_cost_usd: 5, max_duration_minutes: 30, max_turns: 1 })).toBe(
    'at most $5.00, 30 minutes, 1 turn',
  );
  expect(limitsOf({})).toBe('');
});

test('the name of a patch is part of its command only if a shell reads it as one word', () => {
  expect(applyCommand('web.patch')).toBe('git apply --index web.patch');
  for (const name of ['a b.patch', '$(reboot).patch', '--index.patch', 'web\u202e.patch'])
    expect(applyCommand(name)).toBe('git apply --index DOWNLOADED.patch');
});

test('the counts that an execution reports at its end replace the first tries', () => {
  const denied = (execution_id: number, payload: Record<string, unknown>) =>
    ({ event_type: 'connection_denied', execution_id, payload }) as const;
  const first = { number: 1, host: 'a.test', port: 443, count: 1, message: 'not allowed' };
  expect(deniedOf([denied(1, first)])).toEqual({
    counts: new Map([['a.test:443', 1]]),
    tries: 1,
    message: 'not allowed',
  });
  const final = { number: 21, total: 9, connections: [{ ...first, count: 4 }] };
  const { counts, tries } = deniedOf([denied(1, first), denied(1, final), denied(2, { host: 'b.test', port: 0 })]);
  expect([...counts]).toEqual([
    ['a.test:443', 4],
    ['b.test', 1],
  ]);
  expect(tries).toBe(10);
});
