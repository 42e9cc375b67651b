import { describe, expect, test } from 'vitest';
import { decideEnd, type EndedTurn } from './sandbox-end.ts';

const kinds: EndedTurn['kind'][] = ['exited', 'stopped', 'not_created', 'lost', 'silent'];

describe('a sandbox that ends in the middle of a turn', () => {
  test.each(kinds)('ends the run in ERROR by default (%s)', (kind) => {
    for (const policy of [null, 'fail', 'Resume', '1'])
      expect(decideEnd({ phase: 'running', kind, policy, resumes: 0 })).toBe('error');
  });

  test.each([
    ['lost', 0, 'resume'],
    ['silent', 2, 'resume'],
    ['stopped', 0, 'resume'],
    ['lost', 3, 'resumed_too_often'],
    ['silent', 4, 'resumed_too_often'],
    // In these cases the machine was not lost. The agent itself, or the start of the sandbox, failed and would fail again.
    ['exited', 0, 'error'],
    ['not_created', 0, 'error'],
  ] as const)(
    'of the kind %s, after %i resumes, leads to %s if on_worker_loss is "resume"',
    (kind, resumes, decision) => {
      expect(decideEnd({ phase: 'running', kind, policy: 'resume', resumes })).toBe(decision);
    },
  );
});

test.each(kinds)(
  'a run whose sandbox ends before its agent has begun is tried again, with every value of on_worker_loss (%s)',
  (kind) => {
    for (const policy of [null, 'resume'])
      expect(decideEnd({ phase: 'claimed', kind, policy, resumes: 3 })).toBe('retry');
  },
);

test('a run whose sandbox cannot meet its requirements is not tried again', () => {
  expect(decideEnd({ phase: 'claimed', kind: 'unfit', policy: 'resume', resumes: 0 })).toBe('unfit');
});
