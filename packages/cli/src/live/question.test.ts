import { expect, test } from 'vitest';
import { answerOf } from './question.ts';

test.each([
  ['y', { decision: 'approve' }],
  ['YES', { decision: 'approve' }],
  ['n', { decision: 'deny' }],
  ['yes, but not that', { decision: 'deny', message: 'yes, but not that' }],
  ['use npm ci', { decision: 'deny', message: 'use npm ci' }],
])('%j at the prompt of a permission request is %j', (text, answer) => {
  expect(answerOf({ kind: 'permission', request_id: 'q' }, text)).toEqual({ request_id: 'q', ...answer });
});

test('the text at the prompt of a question is the answer, even y', () => {
  expect(answerOf({ kind: 'question', request_id: 'q' }, 'y')).toEqual({ request_id: 'q', message: 'y' });
});
