import type { z } from 'zod';

type Kind = 'number' | 'boolean' | 'array' | 'record' | 'other';

function kindOf(schema: z.core.$ZodType): Kind {
  const { def } = schema._zod;
  if (def.type === 'optional' || def.type === 'default' || def.type === 'nullable') {
    return kindOf((def as unknown as { innerType: z.core.$ZodType }).innerType);
  }
  return def.type === 'number' || def.type === 'boolean' || def.type === 'array' || def.type === 'record'
    ? def.type
    : 'other';
}

function decodeScalar(kind: Kind, text: unknown): unknown {
  if (kind === 'number' && typeof text === 'string' && /^-?\d{1,15}$/.test(text)) return Number(text);
  if (kind === 'boolean') return text === 'true' ? true : text === 'false' ? false : text;
  if (kind === 'array') return Array.isArray(text) ? text : [text];
  return text;
}

/**
 * A function that gives the strings of a query the types that `schema` expects: whole numbers, booleans, arrays where a
 * name is repeated, and objects from `name[key]=value`. What does not look like its type stays a string, and the schema
 * says what is wrong with it.
 */
export function queryDecoder(schema: z.ZodObject): (query: unknown) => Record<string, unknown> {
  const kinds = Object.entries(schema.shape).map(
    ([name, member]) => [name, kindOf(member as z.core.$ZodType)] as const,
  );
  return (query) => {
    const given = query as Record<string, unknown>;
    const decoded: Record<string, unknown> = {};
    for (const [name, kind] of kinds) {
      if (kind === 'record') {
        const pairs = Object.entries(given)
          .filter(([key]) => key.startsWith(`${name}[`) && key.endsWith(']'))
          .map(([key, value]) => [key.slice(name.length + 1, -1), value]);
        if (pairs.length > 0) decoded[name] = Object.fromEntries(pairs);
        else if (given[name] !== undefined) decoded[name] = given[name];
      } else if (given[name] !== undefined) {
        decoded[name] = decodeScalar(kind, given[name]);
      }
    }
    return decoded;
  };
}
