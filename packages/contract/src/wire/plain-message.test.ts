import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { plainMessage, plainParameterMessage } from './plain-message.ts';

const messageOf = (schema: z.ZodType, value: unknown, error: typeof plainMessage = plainMessage) =>
  schema.safeParse(value, { error }).error?.issues[0]?.message;

const cases = (rows: readonly (readonly [schema: z.ZodType, value: unknown, expected: string])[]) =>
  rows.map(([schema, value, expected]) => ({ schema, value, expected }));

const colour = z.enum(['red', 'green', 'dark-blue']);
const shape = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('circle'), radius: z.number() }),
  z.object({ kind: z.literal('square'), side: z.number() }),
]);
const file = z.strictObject({ file_name: z.string(), size: z.number().optional() });
const either = z.union([z.string(), z.array(z.string()), z.object({ name: z.string().min(2) })]);

describe('plainMessage', () => {
  test.each(
    cases([
      [z.string(), undefined, 'is required'],
      [z.string(), 3, 'must be a string, not a number'],
      [z.string(), null, 'must be a string, not null'],
      [z.int(), '3', 'must be a whole number, not a string'],
      [z.int(), 3.5, 'must be a whole number'],
      [z.boolean(), 'yes', 'must be true or false, not a string'],
      [z.string(), true, 'must be a string, not true'],
      [z.array(z.string()), {}, 'must be an array, not an object'],
      [z.object({}), [], 'must be an object, not an array'],
      [z.record(z.string(), z.string()), 'a', 'must be an object, not a string'],
      [z.string().min(1), '', 'must not be empty'],
      [z.string().min(2), 'a', 'must have at least 2 characters'],
      [z.string().max(1), 'ab', 'must have at most 1 character'],
      [z.string().length(4), 'ab', 'must have exactly 4 characters'],
      [z.array(z.string()).min(1), [], 'must have at least 1 entry'],
      [z.array(z.string()).max(2), ['a', 'b', 'c'], 'must have at most 2 entries'],
      [z.number().min(1), 0, 'must be at least 1'],
      [z.number().positive(), 0, 'must be greater than 0'],
      [z.number().lt(5), 5, 'must be less than 5'],
      [z.number().multipleOf(5), 6, 'must be a multiple of 5'],
      [z.email(), 'a', 'must be an email address'],
      [z.iso.date(), 'a', 'must be a day such as 2026-01-31'],
      [z.string().regex(/^a$/), 'b', 'must match the pattern /^a$/'],
      [z.string().startsWith('a'), 'b', 'must begin with "a"'],
      [z.literal('v1'), 'v2', 'must be v1'],
      [colour, 'purple', 'must be one of red, green, dark-blue'],
      [colour, 'gren', 'must be one of red, green, dark-blue; did you mean green?'],
      [colour, 'darkBlue', 'must be one of red, green, dark-blue; did you mean dark-blue?'],
      [colour, undefined, 'is required, and must be one of red, green, dark-blue'],
      [shape, { kind: 'circel' }, 'must be one of circle, square; did you mean circle?'],
      [file, { file_name: 'a', Size: 1 }, 'the member Size is unknown; did you mean size?'],
      [file, { file_name: 'a', colour: 1 }, 'no member colour is known; known members: file_name, size'],
      [either, 3, 'must be a string, an array or an object, not a number'],
      [either, undefined, 'is required'],
      [either, { name: 'a' }, 'must have at least 2 characters'],
      [z.record(z.string().max(1), z.string()), { ab: 'a' }, 'must have at most 1 character'],
      [z.string().refine(() => false), 'a', 'is not accepted here'],
      [z.string().refine(() => false, { error: 'has a reason of its own' }), 'a', 'has a reason of its own'],
    ]),
  )('says: $expected', ({ schema, value, expected }) => {
    expect(messageOf(schema, value)).toBe(expected);
  });
});

test('if a value has very many unknown members, plainMessage names only ten of them', () => {
  const many = Object.fromEntries(Array.from({ length: 12 }, (_, at) => [`size${at}`, 1]));
  expect(messageOf(file, { file_name: 'a', ...many })?.match(/is unknown/g)).toHaveLength(10);
});

describe('plainParameterMessage', () => {
  test.each(
    cases([
      [z.int(), 'a', 'must be a whole number'],
      [z.boolean(), 'a', 'must be true or false'],
      [z.int(), ['1', '2'], 'must be given only once'],
      [z.string(), undefined, 'is required'],
      [z.int().max(500), 501, 'must be at most 500'],
    ]),
  )('says: $expected', ({ schema, value, expected }) => {
    expect(messageOf(schema, value, plainParameterMessage)).toBe(expected);
  });
});
