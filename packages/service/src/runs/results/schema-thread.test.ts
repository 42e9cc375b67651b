import { expect, test } from 'vitest';
import { closeAtEnd } from '../../../../../test/support/close-at-end.ts';
import { faultOfOutputSchema } from './check-output-schema.ts';
import { openSchemaThread } from './schema-thread.ts';

const thread = closeAtEnd(openSchemaThread(500));

const check = (schema: unknown, value?: unknown) =>
  thread.check('team', {
    schema: JSON.stringify(schema),
    ...(value === undefined ? {} : { value: JSON.stringify(value) }),
  });

const finding = {
  type: 'object',
  required: ['severity'],
  properties: { severity: { enum: ['low', 'high'] }, files: { type: 'array', items: { $ref: '#/$defs/file' } } },
  additionalProperties: false,
  $defs: { file: { type: 'string', minLength: 1 } },
};

test('a value that fits is accepted, and each fault of another value has its path', async () => {
  expect(await check(finding, { severity: 'low', files: ['a'] })).toEqual({ kind: 'fits' });
  expect(await check(finding, { severity: 'low', files: ['a', 7] })).toEqual({
    kind: 'faults',
    faults: [{ path: '/files/1', message: 'must be string' }],
  });
  expect(await check(finding, { severity: 'none' })).toMatchObject({
    faults: [{ path: '/severity', message: expect.stringContaining('["low","high"]') }],
  });
});

test('a schema that is not valid is refused with the reason', async () => {
  expect(await faultOfOutputSchema('team', { output_schema: { type: 'strin' } }, thread)).toMatchObject({
    path: 'config.output_schema',
    message: expect.stringContaining('is not a valid JSON Schema'),
  });
  expect(await faultOfOutputSchema('team', { output_schema: finding }, thread)).toBeUndefined();
});

test('a reference to another document is never fetched', async () => {
  const schema = { $ref: 'http://127.0.0.1:9/schema.json' };
  expect(await check(schema, {})).toMatchObject({
    kind: 'invalid_schema',
    message: expect.stringContaining('resolve'),
  });
});

test('a pattern that is slow for a value ends the thread, and the next check succeeds', async () => {
  const slow = { type: 'string', pattern: '^(a+)+$' };
  expect(await check(slow, `${'a'.repeat(40)}!`)).toEqual({ kind: 'too_slow' });
  expect(await check(slow, 'aaa')).toEqual({ kind: 'fits' });
});

test('a value that nests without end for a recursive schema is checked within the limits', async () => {
  const schema = { $defs: { list: { type: 'array', items: { $ref: '#/$defs/list' } } }, $ref: '#/$defs/list' };
  let value: unknown = [];
  for (let depth = 0; depth < 500; depth += 1) value = [value];
  expect((await check(schema, value)).kind).toBe('fits');
});
