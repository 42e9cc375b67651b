/** Retries of runs that have failed. */
import { z } from 'zod';
import { maxRetries, maxRetryBackoffSeconds } from '../limits.ts';
import { errorCatalogue } from '../wire/error-catalogue.ts';
import { ErrorCode } from '../wire/errors.ts';

/** Codes after which the same run cannot succeed without a change by a person. */
const notRepeatable: readonly string[] = ['budget_exceeded', 'insufficient_credits', 'content_policy_violation'];

export const RunRetry = z
  .object({
    on: z
      .array(ErrorCode)
      .min(1)
      .max(Object.keys(errorCatalogue).length)
      .describe('Error codes after which the run is repeated'),
    max: z.int().min(1).max(maxRetries).describe('How many runs may follow the first one'),
    backoff_seconds: z
      .int()
      .min(0)
      .max(maxRetryBackoffSeconds)
      .optional()
      .describe('Seconds from the end of a run to its retry, default 0'),
  })
  .superRefine(({ on }, context) => {
    for (const [index, code] of on.entries())
      if (notRepeatable.includes(code))
        context.addIssue({
          code: 'custom',
          path: ['on', index],
          message: `${code} cannot be repeated: the retry would fail too`,
        });
  })
  .meta({
    id: 'RunRetry',
    description:
      'A new run after a failure with one of these codes, once for each run. All these runs together spend at most max_cost_usd of the first one',
  });
export type RunRetry = z.infer<typeof RunRetry>;
