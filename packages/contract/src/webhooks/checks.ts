/** Conditions of triggers, and their results for a delivery. */
import { z } from 'zod';

export const FilterCondition = z.enum(['in', 'not_in', 'exists', 'any_element', 'body']).meta({
  id: 'FilterCondition',
  description:
    'Condition of a payload filter. any_element: an element of an array must match a nested pattern. body: the body as a whole',
});

export const TestFilterCheck = z
  .object({
    check: FilterCondition,
    path: z.string().optional().describe('Place in the body, such as data.items[2].state'),
    passed: z.boolean().describe('True: the condition is met'),
    reason: z.string().describe('The value that was found, and the allowed values'),
  })
  .meta({ id: 'TestFilterCheck', description: 'A condition of a payload filter, and how it came out' });

/** Maximum number of failed conditions in an outcome. */
export const maxChecksOfOutcome = 5;

export const TriggerCheck = TestFilterCheck.extend({
  check: z.enum([...FilterCondition.options, 'event']).meta({
    id: 'TriggerCondition',
    description: 'As in TestFilterCheck. event: the name of the event, if a GitHub trigger or `events` requires one',
  }),
  path: z
    .string()
    .optional()
    .describe('Place in the body, such as data.items[2].state; for a GitHub trigger, the member of its filter'),
  trigger: z.int().describe('Index in the triggers of the automation'),
}).meta({ id: 'TriggerCheck', description: 'A condition of a trigger, and how it came out' });
export type TriggerCheck = z.infer<typeof TriggerCheck>;

export const failedChecks = z
  .array(TriggerCheck)
  .optional()
  .describe(
    `Conditions that were not met, the first ${maxChecksOfOutcome} of the automation; absent: none, or not stored`,
  );
