import { expect, test } from 'vitest';
import { z } from 'zod';
import { findUnknown } from './find-unknown.ts';
import { knownMembers } from './known-members.ts';

const shape = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('circle'), radius: z.number() }),
  z.object({ kind: z.literal('square'), length: z.number() }),
]);
const schema = knownMembers(
  z
    .looseObject({
      shapes: z.array(shape).optional(),
      either: z.union([z.string(), z.object({ first: z.string() }), z.object({ second: z.string() })]).nullable(),
      servers: z.record(z.string(), z.object({ command: z.string().default('sh') })),
      metadata: z.record(z.string(), z.string()),
      counts: z.object({ total: z.number() }).catchall(z.number()),
    })
    .refine(() => true),
);

const look = (value: unknown) => {
  const { misspelt, ignored } = findUnknown(schema, value);
  return [...misspelt.map(({ path }) => `misspelt ${path}`), ...ignored.map(({ path }) => `ignored ${path}`)];
};

test('names are checked in objects, arrays, maps of objects and the chosen branch of unions', () => {
  const value = {
    shapes: [
      { kind: 'circle', radios: 1 },
      { kind: 'square', radius: 1, Length: 2 },
    ],
    either: { first: 'a', second: 'b', secnd: 'c' },
    servers: { colour: { comand: 'x', colour: 'red' } },
  };
  expect(look(value)).toEqual([
    'misspelt shapes.0.radios',
    'misspelt shapes.1.Length',
    'misspelt either.secnd',
    'misspelt servers.colour.comand',
    'ignored shapes.1.radius',
    'ignored servers.colour.colour',
  ]);
});

test('every name in a map with free names is accepted', () => {
  expect(look({ metadata: { meta_data: 'x', Shapes: 'y' }, counts: { totl: 1 } })).toEqual([]);
});

test('names are not checked in values of another type than the schema expects', () => {
  expect(look({ shapes: 'x', either: 'text', servers: [1, null] })).toEqual([]);
  expect(look(['x'])).toEqual(['ignored 0']);
  expect(look('text')).toEqual([]);
});

test('only a limited number of names is compared, so that a hostile body costs little time', () => {
  const many = Object.fromEntries(Array.from({ length: 19_000 }, (_, index) => [`shepes${index}`, 1]));
  const { ignored } = findUnknown(schema, many);
  expect(ignored).toHaveLength(100);
});
