/** The state of a task's Kubernetes objects, as the public worker reports it with a failure. */
import { z } from 'zod';
import { shorten } from '../wire/shorten.ts';

const maxItems = 20;

/** A text of the cluster. A long text is shortened, and a value of another type counts as absent, so that the report of the failure is read. */
const Word = z
  .string()
  .transform((text) => shorten(text, 300))
  .optional()
  .catch(undefined);
const Count = z.int().optional().catch(undefined);

/** Keeps the first entries of a list. A list with another form counts as absent. */
const listOf = <Item extends z.ZodType>(item: Item) =>
  z
    .array(z.unknown())
    .max(1000)
    .transform((items) => items.slice(0, maxItems))
    .pipe(z.array(item).max(maxItems))
    .optional()
    .catch(undefined);

const Conditions = listOf(z.object({ type: Word, status: Word, reason: Word, last_transition_time: Word }));

/** Has no messages of events and no logs, because these may contain secrets of other programs. Unknown members are removed. */
export const KubernetesFailure = z.object({
  observed_at: Word,
  observation_source: Word,
  job: z.object({ name: Word, uid: Word, conditions: Conditions }).optional().catch(undefined),
  pod: z
    .object({ name: Word, uid: Word, phase: Word, reason: Word, deletion_timestamp: Word, conditions: Conditions })
    .optional()
    .catch(undefined),
  container: z
    .object({
      kind: Word,
      name: Word,
      state: Word,
      waiting_reason: Word,
      termination_reason: Word,
      raw_exit_code: Count,
      normalized_exit_code: Count,
      signal: Count,
      started_at: Word,
      finished_at: Word,
    })
    .optional()
    .catch(undefined),
  events: listOf(z.object({ type: Word, reason: Word, count: Count, first_observed_at: Word, last_observed_at: Word })),
  truncated: z.boolean().optional().catch(undefined),
});
export type KubernetesFailure = z.infer<typeof KubernetesFailure>;
