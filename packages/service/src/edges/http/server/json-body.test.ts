import { describe, expect, test } from 'vitest';
import { Refusal } from '../../../platform/serving/refusal.ts';
import { parseJsonBody } from './json-body.ts';

const parse = (text: string) => parseJsonBody(Buffer.from(text));

async function faultsOf(text: string) {
  try {
    await parse(text);
  } catch (error) {
    if (error instanceof Refusal) return error.options.errors;
    throw error;
  }
  return [];
}

const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`;
const tooMany = [{ path: '', message: 'must not hold more than 20000 values' }];

test('a JSON body is parsed, and an empty body counts as absent', async () => {
  const body = { a: [1, null, { b: 'é🎉"\\' }], '': {} };
  expect(await parse(JSON.stringify(body))).toEqual(body);
  expect(await parse('')).toBeUndefined();
});

test.each([
  ['{"a":[{"b":"\\u0000"}]}', 'a.0.b', 'must not contain the NUL character (U+0000)'],
  ['{"a\\u0000":1}', 'a\\u0000', 'must not contain the NUL character (U+0000)'],
  ['{"a":{"b":"\\ud800"}}', 'a.b', 'must not contain half of a surrogate pair'],
  ['[1,{"__proto__":1}]', '1.__proto__', 'is not allowed as a name'],
  ['"\\u0000"', '', 'must not contain the NUL character (U+0000)'],
])('%s is refused with its position', async (text, path, message) => {
  expect(await faultsOf(text)).toEqual([{ path, message }]);
});

test('the refusal of a body names the first twenty of many faults', async () => {
  expect(await faultsOf(JSON.stringify(Array(1000).fill('\u0000')))).toHaveLength(20);
});

test('a body with 100 levels is read, and bodies with 101 and nine thousand levels are refused', async () => {
  expect(await faultsOf(nested(100))).toEqual([]);
  for (const depth of [101, 9_000]) {
    expect(await faultsOf(nested(depth))).toEqual([{ path: '', message: 'must not nest deeper than 100 levels' }]);
  }
});

describe('20,000 values', () => {
  const list = (value: string, count: number) => `[${Array(count).fill(value).join(',')}]`;

  test.each([['[]'], ['{}'], ['1'], ['"a,b"'], ['null']])(
    '20,000 values of %s are read, and one more is refused',
    async (value) => {
      expect(await faultsOf(list(value, 19_999))).toEqual([]);
      expect(await faultsOf(list(value, 20_000))).toEqual(tooMany);
    },
  );

  test('commas inside of strings are not counted as values', async () => {
    for (const text of [',', '[', '{', '"', '\\', '\\"', ',"\\\\"']) {
      const body = { prompt: text.repeat(30_000), more: [1, 2] };
      expect(await parse(JSON.stringify(body))).toEqual(body);
    }
  });

  test('an incomplete body of 20,000 values is not valid JSON', async () => {
    expect((await faultsOf(`{"a":"${','.repeat(30_000)}`))?.[0]?.message).toMatch(/^the body is not valid JSON/);
  });
});

test('the memory of a large body is free before its values exist', async () => {
  const text = JSON.stringify({ data: 'x'.repeat(2 * 1024 * 1024) });
  const body = Buffer.allocUnsafeSlow(text.length);
  body.write(text);
  expect(await parseJsonBody(body)).toEqual(JSON.parse(text));
  expect(body.buffer.byteLength).toBe(0);
});
