import { z } from 'zod';
import { makeSpelling } from '../../wire/spelling.ts';

/** Separates the suggested name from the rest of the message about an unknown key. No key of a definition file contains this character. */
const separator = '\u0000';

/** The keys that people may expect but that are not accepted, each with the reason. */
type Refused = Readonly<Record<string, string>>;

/**
 * Returns a schema of an object that accepts only known keys. The fault about unknown keys has one line for each key, with the message, a
 * separator, and the known name that the writer probably meant. If the object is missing, the fault about this object includes `purpose`.
 */
export function strictObject<S extends z.core.$ZodShape>(shape: S, refused: Refused = {}, purpose?: string) {
  const spelling = makeSpelling(Object.keys(shape));
  const describeKey = (key: string): string => {
    const reason = Object.hasOwn(refused, key) ? refused[key] : undefined;
    const suggestion = reason === undefined ? spelling.suggest(key) : undefined;
    if (reason !== undefined) return `is not available: ${reason}`;
    const hint = suggestion ? `; did you mean ${suggestion}?` : `; known keys: ${Object.keys(shape).join(', ')}`;
    return `is not a known key${hint}${separator}${suggestion ?? ''}`;
  };
  return z.strictObject(shape, {
    error: (issue) => {
      if (issue.code === 'unrecognized_keys') return issue.keys.map(describeKey).join('\n');
      return purpose !== undefined && issue.input === undefined ? `is required: ${purpose}` : undefined;
    },
  });
}

/** Splits the message about an unknown key into the message and the suggested name. */
export function readUnknownKey(message: string): { readonly message: string; readonly suggestion?: string } {
  const [text = '', suggestion] = message.split(separator);
  return suggestion ? { message: text, suggestion } : { message: text };
}
