import { expect, test } from 'vitest';
import { providerSchema } from './tool-schema.ts';

const text = { type: 'string' };
const needs = (name: string) => ({ type: 'object', properties: { [name]: text }, required: [name] });

test.each([
  ['no schema', undefined, { type: 'object', properties: {} }],
  ['a schema without a type', {}, { type: 'object', properties: {} }],
  ['a schema that is a list', [], { type: 'object', properties: {} }],
  ['a type that is no object', { type: 'string' }, { type: 'object', properties: {} }],
  [
    'definitions inside of members',
    { type: 'object', $defs: { Q: needs('team') }, properties: { q: { $ref: '#/$defs/Q' } }, required: ['q'] },
    { type: 'object', $defs: { Q: needs('team') }, properties: { q: { $ref: '#/$defs/Q' } }, required: ['q'] },
  ],
  [
    'alternatives inside of members',
    { type: 'object', properties: { to: { oneOf: [text, { type: 'number' }] } } },
    { type: 'object', properties: { to: { oneOf: [text, { type: 'number' }] } } },
  ],
  [
    'a definition at the top',
    { $ref: '#/$defs/Q', $defs: { Q: needs('team') } },
    { ...needs('team'), $defs: { Q: needs('team') } },
  ],
  [
    'several required parts',
    { allOf: [needs('a'), needs('b')] },
    { type: 'object', properties: { a: text, b: text }, required: ['a', 'b'] },
  ],
  [
    'arrays without items',
    { type: 'object', properties: { tags: { type: 'array' }, deep: { items: { type: 'array' } } } },
    {
      type: 'object',
      properties: { tags: { type: 'array', items: {} }, deep: { items: { type: 'array', items: {} } } },
    },
  ],
  [
    'required members that no branch declares',
    { type: 'object', properties: { a: text }, required: ['a', 'b', 3] },
    { type: 'object', properties: { a: text }, required: ['a'] },
  ],
])('%s becomes a schema that providers accept', (_, given, schema) => {
  expect(providerSchema(given)).toEqual({ schema });
});

test.each(['anyOf', 'oneOf'])(
  'alternatives (%s) become optional members and a sentence in the description',
  (keyword) => {
    const { schema, note } = providerSchema({ type: 'object', [keyword]: [needs('content'), needs('source_url')] });
    expect(schema).toEqual({ type: 'object', properties: { content: text, source_url: text } });
    expect(note).toBe(
      `Give ${keyword === 'anyOf' ? 'at least one' : 'exactly one'} of these sets of members: (content) or (source_url).`,
    );
  },
);

test('members that depend on a condition become optional, and a sentence names the condition', () => {
  const given = {
    ...needs('mode'),
    if: { properties: { mode: { const: 'large' } } },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    then: needs('limit'),
  };
  const { schema, note } = providerSchema(given);
  expect(schema).toEqual({ type: 'object', properties: { mode: text, limit: text }, required: ['mode'] });
  expect(note).toBe('The server checks further conditions between the members.');
});

test('definitions that refer to each other many times are read only in part', () => {
  const refs = Array.from({ length: 50 }, (_, at) => ({ $ref: `#/$defs/d${at}` }));
  const $defs = Object.fromEntries(refs.map((_, at) => [`d${at}`, { anyOf: refs, properties: { [`p${at}`]: text } }]));
  const { schema } = providerSchema({ anyOf: refs, $defs });
  expect(schema).toMatchObject({ type: 'object', properties: { p0: text } });
});

test('a member with the name __proto__ changes no other member', () => {
  const given = JSON.parse('{"properties": {"__proto__": {"type": "array"}, "a": {}}}') as object;
  const { schema } = providerSchema(given);
  expect(Object.keys(schema.properties as object)).toEqual(['__proto__', 'a']);
  expect(JSON.parse(JSON.stringify(schema))).toMatchObject({ properties: { a: {} } });
});
