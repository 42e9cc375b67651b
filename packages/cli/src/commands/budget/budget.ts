/** The command `budget`: the limits of the team, and its spending of this month. */
import type { TeamBudget } from '@runyard/contract/team/budgets';
import { Failure } from '../../exits/failure.ts';
import { readRules } from '../../input/notify-rules.ts';
import { request } from '../../route-commands/row.ts';
import { formatCount, formatUsd } from '../../terminal/amounts.ts';

const linesOf = ({ month, spent_usd, monthly_limit_usd: limit, credits }: TeamBudget): string[] => [
  `spent in ${month}   ${formatUsd(spent_usd)}`,
  `monthly limit      ${limit === undefined ? 'none' : formatUsd(limit)}`,
  `credits left       ${credits === undefined ? 'not used' : formatCount(credits)}`,
];

/** Returns a function that reads the number in the value of an option, and null for the value `none`. */
const amountOf =
  (option: string) =>
  (text: string | undefined): number | null | undefined => {
    if (text === undefined) return undefined;
    if (text === 'none') return null;
    const amount = Number(text);
    if (text.trim() === '' || !(amount >= 0))
      throw new Failure(`${option} takes a number from 0, or none, not ${JSON.stringify(text)}`, 2);
    return amount;
  };

/** The commands of `budget`. */
export const budget = [
  request('getTeamBudget', 'show', 'show the limits, and the spending of this month', {
    isDefault: true,
    orJson: true,
    lines: linesOf,
  }),
  request('updateTeamBudget', 'set', 'set limits; limits without an option do not change', {
    flags: {
      '--monthly <usd>': {
        member: 'monthly_limit_usd',
        help: 'US dollars of a calendar month in UTC, or none',
        read: amountOf('--monthly'),
      },
      '--credits <credits>': {
        member: 'credits',
        help: 'credits that are left from now on, or none; a credit is a US cent',
        read: amountOf('--credits'),
      },
      '--notify <rules>': {
        member: 'notify',
        help: 'people and event subscriptions to notify when it is used up: budget=UID,SUBSCRIPTION; none removes the rules',
        read: readRules,
      },
    },
    needsFlag: 'give --monthly, --credits or --notify',
    orJson: true,
    lines: linesOf,
  }),
];
