import type { NotifyEvent, NotifyRule } from '@runyard/contract/runs/notify';
import { useSession } from '../api/session.ts';
import { Hint, Stack } from './blocks.tsx';
import { CheckGroup } from './check-group.tsx';

/** How many failed runs in a row the check box of the form means. */
const timesOfForm = 3;

const events = [
  ['failed', 'a run fails'],
  ['failed_times', `${timesOfForm} runs in a row fail`],
  ['missed', 'a time passes without a run'],
  ['needs_answer', 'a run asks something'],
] as const satisfies Events;
/** The events that a form offers, each with its words. */
type Events = readonly (readonly [NotifyEvent, string])[];

/** The event of a budget. */
export const budgetEvents = [['budget', 'the limit is reached or no credits are left']] as const satisfies Events;

/** Returns true if a check box of the form means this rule. */
const isOfForm = ({ on, times }: NotifyRule, offered: Events): boolean =>
  offered.some(([event]) => event === on) && (on !== 'failed_times' || times === timesOfForm);

/** The part of a form in which a person chooses of what a schedule, an automation or a budget notifies this person. */
export function NotifyField({
  rules = [],
  offered = events,
}: {
  rules: readonly NotifyRule[] | undefined;
  offered?: Events;
}) {
  const { person } = useSession();
  const own = rules.filter((rule) => isOfForm(rule, offered) && rule.to.includes(person.uid)).map(({ on }) => on);
  const others = new Set(rules.flatMap(({ to }) => to.filter((uid) => uid !== person.uid))).size;
  return (
    <Stack gap={2}>
      <CheckGroup legend="Notify me in the inbox when" name="notify" path="notify" options={offered} chosen={own} />
      {others > 0 && (
        <Hint as="p">{`Rules notify ${others} other ${others === 1 ? 'person or subscription' : 'people and subscriptions'} too.`}</Hint>
      )}
    </Stack>
  );
}

/** Returns the rules of the request: those of others stay, and the chosen ones are added for the person. */
export function rulesOf(
  data: FormData,
  rules: readonly NotifyRule[] = [],
  personUid: string,
  offered: Events = events,
): NotifyRule[] {
  const chosen = offered.map(([event]) => event).filter((event) => data.getAll('notify').includes(event));
  const kept = rules.flatMap((rule): NotifyRule[] => {
    const to = isOfForm(rule, offered) ? rule.to.filter((uid) => uid !== personUid) : rule.to;
    return to.length === 0 ? [] : [{ ...rule, to }];
  });
  const added = chosen.map(
    (on): NotifyRule => ({
      on,
      ...(on === 'failed_times' ? { times: timesOfForm } : {}),
      to: [personUid],
    }),
  );
  return [...kept, ...added];
}
