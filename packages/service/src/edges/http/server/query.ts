import type { z } from 'zod';
import { invalid } from '../../../platform/serving/refusal.ts';

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
  if (kind === 'number' && typeof text === 'string' && /^-?\d{1,16}$/.test(text)) {
    const number = Number(text);
    return Number.isSafeInteger(number) ? number : text;
  }
  if (kind === 'boolean') return text === 'true' ? true : text === 'false' ? false : text;
  if (kind === 'array') return Array.isArray(text) ? text : [text];
  return text;
}

/**
 * Returns a function that converts the strings of a query to the types that `schema` expects: integers, booleans, arrays for repeated
 * names, and objects from `name[key]=value`. A string that cannot be converted stays a string, and the schema reports the fault.
 * Throws a 400 refusal for a name that no object may have.
 */
export function queryDecoder(schema: z.ZodObject): (query: unknown) => Record<string, unknown> {
  const kinds = Object.entries(schema.shape).map(
    ([name, member]) => [name, kindOf(member as z.core.$ZodType)] as const,
  );
  return (query) => {
    const parameters = query as Record<string, unknown>;
    const decoded: Record<string, unknown> = {};
    for (const [name, kind] of kinds) {
      if (kind === 'record') {
        const pairs = Object.entries(parameters)
          .filter(([key]) => key.startsWith(`${name}[`) && key.endsWith(']'))
          .map(([key, value]): [string, unknown] => [key.slice(name.length + 1, -1), value]);
        // Refuse this name, because the schema of a record would skip it. The list would then be unfiltered and contain all runs.
        if (pairs.some(([key]) => key === '__proto__'))
          throw invalid([{ path: `${name}.__proto__`, message: 'is not allowed as a name' }]);
        if (pairs.length > 0) decoded[name] = Object.fromEntries(pairs);
        else if (parameters[name] !== undefined) decoded[name] = parameters[name];
      } else if (parameters[name] !== undefined) {
        decoded[name] = decodeScalar(kind, parameters[name]);
      }
    }
    return decoded;
  };
}
