import { expect, test } from 'vitest';
import { storableJson } from './storable-json.ts';

test('storableJson does not change a value that the database can store', () => {
  const value = { text: 'a\u{1F600}b \\u0000 "__proto__"', list: [1, null, true, { deep: '\t' }], gone: undefined };
  expect(storableJson(value)).toBe(JSON.stringify(value));
});

test('storableJson replaces NUL and lone surrogates in texts and names', () => {
  expect(JSON.parse(storableJson({ 'a\u0000': ['\ud83d', 'x\ude00y'], b: 'z\u0000' }))).toEqual({
    'a\ufffd': ['\ufffd', 'x\ufffdy'],
    b: 'z\ufffd',
  });
});

test('storableJson renames the member __proto__, because the service refuses this name', () => {
  expect(storableJson(JSON.parse('{"input":{"__proto__":{"a":"b"}}}'))).toBe('{"input":{"[__proto__]":{"a":"b"}}}');
});

test('storableJson converts dates in the same way as JSON.stringify', () => {
  expect(storableJson({ at: new Date(0), text: '\ud800' })).toBe('{"at":"1970-01-01T00:00:00.000Z","text":"\ufffd"}');
});
