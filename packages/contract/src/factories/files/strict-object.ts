import { z } from 'zod';
import { makeSpelling } from '../../wire/spelling.ts';

/** Separates the known name from the key in the message of an unknown key. No key of a definition file contains it. */
const separator = '\u0000';

/** Reasons why keys that people may expect are not accepted here, by key. */
type Refused = Readonly<Record<string, string>>;

/**
 * An object that accepts no other keys. Its fault for unknown keys has one line for each key: the message, a separator, and the known name
 * that was probably meant. `purpose` is added to the fault that the object is missing.
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

/** Splits the message of an unknown key. */
export function readUnknownKey(message: string): { readonly message: string; readonly suggestion?: string } {
  const [text = '', suggestion] = message.split(separator);
  return suggestion ? { message: text, suggestion } : { message: text };
}
