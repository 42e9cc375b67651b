/** Members of the filters of triggers: a list of values, or an object with `in` and `not_in`. */
import { z } from 'zod';
import type { Matcher } from '../../webhooks/github-events.ts';
import { NonBlank } from '../../wire/primitives.ts';
import { strictObject } from './strict-object.ts';

const maxValues = 100;

/**
 * Returns the schema of a matcher. A plain list means `in`. Null, an empty list and an empty object match everything and become
 * `undefined`. `sameAs` converts a value into the form that is used for comparisons.
 */
export function matcher<T extends string | number>(
  value: z.ZodType<T, T>,
  sameAs: (value: T) => unknown = (each) => each,
) {
  const list = z.array(value).max(maxValues);
  const operators = strictObject({
    in: list.optional().describe('The field must have one of these values'),
    not_in: list.optional().describe('The field must have none of these values'),
  }).superRefine((matcher, context) => {
    const excluded = new Set(matcher.not_in?.map(sameAs));
    for (const [index, each] of (matcher.in ?? []).entries())
      if (excluded.has(sameAs(each)))
        context.addIssue({ code: 'custom', path: ['in', index], message: 'is in not_in too, so it can never match' });
  });
  return z
    .union([list, operators, z.null()], { error: 'must be a list of values, or an object with in and not_in' })
    .transform((given): Matcher | undefined => {
      const { in: wanted, not_in: excluded } = Array.isArray(given) ? { in: given } : (given ?? {});
      if (!wanted?.length && !excluded?.length) return undefined;
      return { ...(wanted?.length ? { in: wanted } : {}), ...(excluded?.length ? { not_in: excluded } : {}) };
    })
    .optional();
}

const text = NonBlank.max(300);
const lowerCase = (value: string): string => value.toLowerCase();

/** Case-sensitive text, such as branches and paths. */
export const textMatcher = matcher(text);
/** Case-insensitive text, such as logins and labels. */
export const nameMatcher = matcher(text, lowerCase);
/** Repositories as owner/name. */
export const repositoryMatcher = matcher(
  z.string().regex(/^[A-Za-z0-9_.-]{1,100}\/[A-Za-z0-9_.-]{1,100}$/, { error: 'must be owner/name' }),
  lowerCase,
);
/** Numbers of pull requests. */
export const numberMatcher = matcher(z.int().min(1));
