import { expect, test } from 'vitest';
import { makeSpelling } from './spelling.ts';

const known = makeSpelling(['approval_policy', 'model_id', 'mode', 'title', 'prompt', 'url', 'env', 'q', 'config']);

test.each([
  ['approvalPolicy', 'approval_policy'],
  ['approval-policy', 'approval_policy'],
  ['APPROVAL_POLICY', 'approval_policy'],
  ['aproval_polciy', 'approval_policy'],
  ['promt', 'prompt'],
  ['propmt', 'prompt'],
  ['tilte', 'title'],
  ['modelId', 'model_id'],
  ['URL', 'url'],
  ['confg', 'config'],
])('suggests for %s the known name %s', (name, suggestion) => {
  expect(known.suggest(name)).toBe(suggestion);
});

test.each(['uri', 'en', 'r', 'titled_thing', 'tails', 'colour', 'approval', '', 'ü', 'x'.repeat(100_000)])(
  'suggests nothing for %.20s, which does not resemble a known name',
  (name) => {
    expect(known.suggest(name)).toBeUndefined();
  },
);

test('suggests the known name that is nearest if several names are similar', () => {
  const names = makeSpelling(['created_before', 'created_after', 'updated_after']);
  expect(names.suggest('updated_aftr')).toBe('updated_after');
  expect(names.suggest('createdAfter')).toBe('created_after');
});
