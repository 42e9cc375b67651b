/** Rules that name whom a schedule, an automation or a budget notifies of what goes wrong. */
import { z } from 'zod';
import { maxNotifyRules, maxNotifyTargets, maxNotifyTimes } from '../limits.ts';
import { NonBlank } from '../wire/primitives.ts';

/** The events of which a rule notifies. */
export const NotifyEvent = z.enum(['failed', 'failed_times', 'missed', 'needs_answer', 'budget']).meta({
  id: 'NotifyEvent',
  description:
    '`failed`: a run is FAILED or in ERROR. `failed_times`: `times` runs in a row are. `missed`: a time passed without a run, because the run could not be created or the service was down. `needs_answer`: a run is BLOCKED. `budget`: the budget of the team is used up; of a schedule or an automation: a run failed because a budget is used up',
});
export type NotifyEvent = z.infer<typeof NotifyEvent>;

const times = z
  .int()
  .min(2)
  .max(maxNotifyTimes)
  .describe(`Only with \`failed_times\`, which needs it: number of runs, 2 to ${maxNotifyTimes}`);
const to = z
  .array(NonBlank.max(100))
  .min(1)
  .max(maxNotifyTargets)
  .describe(
    `UIDs of members of the team, whose inbox gets a notification, and ids of event subscriptions of the team, which get an event \`notification\`; at most ${maxNotifyTargets}. Only administrators may name subscriptions. A person who has left the team is skipped`,
  );

export const NotifyRule = z
  .object({ on: NotifyEvent, times: times.optional(), to })
  .superRefine(({ on, times: given }, context) => {
    if ((on === 'failed_times') === (given !== undefined)) return;
    const message = given === undefined ? 'is required with failed_times' : 'is only for failed_times';
    context.addIssue({ code: 'custom', path: ['times'], message });
  })
  .meta({ id: 'NotifyRule', description: 'The people and event subscriptions to notify of one kind of problem' });
export type NotifyRule = z.infer<typeof NotifyRule>;

/** The rules of a schedule or an automation. */
export const NotifyRules = z
  .array(NotifyRule)
  .max(maxNotifyRules)
  .describe(
    `Rules that name people and event subscriptions to notify of problems, at most ${maxNotifyRules}. The person as whom a run acts is asked and notified without a rule. In a request: absent, the rules do not change; empty, they are removed`,
  );

/** The rules of a budget. */
export const BudgetNotifyRules = z
  .array(
    z.object({ on: z.literal('budget').describe('The budget is used up'), to }).meta({
      id: 'BudgetNotifyRule',
      description: 'The people and event subscriptions to notify when the budget of the team is used up',
    }),
  )
  .max(maxNotifyRules)
  .describe(
    'Rules that name people and event subscriptions to notify when the budget is used up. In a request: absent, the rules do not change; empty, they are removed',
  );
