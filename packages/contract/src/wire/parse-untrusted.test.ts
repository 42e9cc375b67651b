import { expect, test } from 'vitest';
import { z } from 'zod';
import { parseUntrusted } from './parse-untrusted.ts';

const schema = z.object({ names: z.array(z.string().min(1).max(9)) });

test('parseUntrusted returns the result of the schema', () => {
  expect(parseUntrusted(schema, { names: ['a'] })).toEqual({ success: true, data: { names: ['a'] } });
  expect(parseUntrusted(schema, { names: [''] }, { error: () => 'is wrong' }).error?.issues).toMatchObject([
    { path: ['names', 0], message: 'is wrong' },
  ]);
});

test.each(['{"toString": ""}', '{"valueOf": {}, "toString": null}', '[[{"toString": 0}]]'])(
  'parseUntrusted refuses a value whose member length is %s, which zod cannot compare',
  (length) => {
    const value = { names: ['a', { length: JSON.parse(length) }] };
    expect(() => schema.safeParse(value), 'without it').toThrow(TypeError);
    expect(parseUntrusted(schema, value).error?.issues).toMatchObject([
      { path: ['names', 1], message: expect.stringContaining('has a member length') },
    ]);
  },
);

test('parseUntrusted refuses a value whose length or content is nested too deeply for the stack', () => {
  const deep = JSON.parse(`${'['.repeat(100_000)}${']'.repeat(100_000)}`);
  expect(parseUntrusted(schema, { names: [{ length: deep }], deep }).error?.issues).toMatchObject([
    { path: ['names', 0], message: expect.stringContaining('has a member length') },
  ]);
});

test('parseUntrusted does not catch an error that a function of the schema throws', () => {
  const faulty = z.string().transform(() => {
    throw new TypeError('a fault of ours');
  });
  expect(() => parseUntrusted(faulty, 'a')).toThrow('a fault of ours');
});
