/** The commands `budget` and `usage`: the budget of the team, and how much the team uses models. */
import type {
  TeamBudget,
  UpdateTeamBudgetRequest,
  UsageDimension,
  UsageRow,
  UsageThing,
} from '@runyard/contract/team/budgets';
import { usageDimensions } from '@runyard/contract/wire/choices';
import type { UserProfile } from '@runyard/contract/wire/profiles';
import { type Command, Option } from 'commander';
import { connect } from '../api.ts';
import { type Context, processContext } from '../context.ts';
import { Failure } from '../failure.ts';
import { formatCount, formatUsd } from '../live/amounts.ts';
import type { Column } from '../live/columns.ts';
import { harmlessJson } from '../live/harmless.ts';
import { printList } from '../live/list.ts';
import { asJson } from '../options.ts';

function printBudget(context: Context, budget: TeamBudget, options: { readonly json?: true }): void {
  if (options.json) {
    context.out(`${harmlessJson(budget)}\n`);
    return;
  }
  const { month, spent_usd, monthly_limit_usd: limit, credits } = budget;
  context.out(`spent in ${month}   ${formatUsd(spent_usd)}\n`);
  context.out(`monthly limit      ${limit === undefined ? 'none' : formatUsd(limit)}\n`);
  context.out(`credits left       ${credits === undefined ? 'not used' : formatCount(credits)}\n`);
}

/** Shows the limits of the team and its spending of this month. */
async function showBudget(context: Context, options: { readonly json?: true }): Promise<void> {
  printBudget(context, await connect(context).getTeamBudget(), options);
}

/** Returns the number in the value of an option. Returns null for the value `none`. */
function amountOf(option: string, text: string | undefined): number | null | undefined {
  if (text === undefined) return undefined;
  if (text === 'none') return null;
  const amount = Number(text);
  if (text.trim() === '' || !(amount >= 0))
    throw new Failure(`${option} takes a number from 0, or none, not ${JSON.stringify(text)}`, 2);
  return amount;
}

/** Changes the limits that the options name, and shows the budget. */
async function setBudget(
  context: Context,
  options: { readonly monthly?: string; readonly credits?: string; readonly json?: true },
): Promise<void> {
  const monthly = amountOf('--monthly', options.monthly);
  const credits = amountOf('--credits', options.credits);
  if (monthly === undefined && credits === undefined) throw new Failure('give --monthly, --credits or both', 2);
  const body: UpdateTeamBudgetRequest = {
    ...(monthly === undefined ? {} : { monthly_limit_usd: monthly }),
    ...(credits === undefined ? {} : { credits }),
  };
  printBudget(context, await connect(context).updateTeamBudget({ body }), options);
}

const nameOf = (profile: UserProfile | undefined): string => profile?.display_name ?? profile?.uid ?? '';

/**
 * Returns the name or UID of the thing, such as an automation, whose usage a row shows. Returns `none` if the runs of the row had no such
 * thing, and `not known` if the service does not know the thing.
 */
const thingText = (thing: UsageThing | undefined): string =>
  thing?.kind === 'known' ? (thing.name ?? thing.uid ?? '') : thing?.kind === 'none' ? 'none' : 'not known';

const groupColumns: Readonly<Record<UsageDimension, Column<UsageRow>>> = {
  day: { header: 'DAY', text: ({ day }) => day ?? '' },
  model: { header: 'MODEL', text: ({ model_id }) => model_id ?? '' },
  agent: { header: 'AGENT', flexible: true, text: ({ agent }) => nameOf(agent) },
  creator: { header: 'CREATOR', flexible: true, text: ({ creator }) => nameOf(creator) },
  automation: { header: 'AUTOMATION', flexible: true, text: ({ automation }) => thingText(automation) },
  factory: { header: 'FACTORY', flexible: true, text: ({ factory }) => thingText(factory) },
  environment: { header: 'ENVIRONMENT', flexible: true, text: ({ environment }) => thingText(environment) },
};

const sumColumns: readonly Column<UsageRow>[] = [
  {
    header: 'REQUESTS',
    align: 'right',
    text: ({ requests }) => formatCount(requests),
    raw: ({ requests }) => `${requests}`,
  },
  {
    header: 'TOKENS IN',
    align: 'right',
    text: (row) => formatCount(promptTokens(row)),
    raw: (row) => `${promptTokens(row)}`,
  },
  {
    header: 'TOKENS OUT',
    align: 'right',
    text: ({ output_tokens }) => formatCount(output_tokens),
    raw: ({ output_tokens }) => `${output_tokens}`,
  },
  {
    header: 'COST',
    align: 'right',
    text: ({ cost_usd, unpriced_requests }) => `${formatUsd(cost_usd)}${unpriced_requests > 0 ? ' or more' : ''}`,
    raw: ({ cost_usd }) => `${cost_usd}`,
  },
];

const promptTokens = ({ input_tokens, cache_read_tokens, cache_write_tokens }: UsageRow): number =>
  input_tokens + cache_read_tokens + cache_write_tokens;

/** Lists the model usage of the team. A caller who is only a member gets the usage of their own runs. Reads all pages. */
async function listUsage(
  context: Context,
  options: {
    readonly from?: string;
    readonly to?: string;
    readonly by?: readonly UsageDimension[];
    readonly json?: true;
  },
): Promise<void> {
  const client = connect(context);
  const by = options.by ?? ['day'];
  const rows: UsageRow[] = [];
  const query = {
    group_by: [...by],
    limit: 500,
    ...(options.from ? { from: options.from } : {}),
    ...(options.to ? { to: options.to } : {}),
  };
  let report = await client.getUsage({ query });
  rows.push(...report.usage);
  while (report.page_info.next_cursor !== undefined) {
    report = await client.getUsage({
      query: { ...query, from: report.from, to: report.to, cursor: report.page_info.next_cursor },
    });
    rows.push(...report.usage);
  }
  const { from, to, scope, storage } = report;
  const json = { from, to, scope, ...(storage ? { storage } : {}), usage: rows };
  const columns = [...new Set(by)].map((each) => groupColumns[each]).concat(sumColumns);
  printList(context, { columns, rows, json, none: `no model was used from ${from} to ${to}` }, options);
}

/** Declares the command `budget`. */
export function declareBudget(budget: Command): void {
  budget
    .command('show', { isDefault: true })
    .description('show the limits, and the spending of this month')
    .option(...asJson)
    .action((options) => showBudget(processContext(), options));
  budget
    .command('set')
    .description('set limits; limits without an option do not change')
    .option('--monthly <usd>', 'US dollars of a calendar month in UTC, or none')
    .option('--credits <credits>', 'credits that are left from now on, or none; a credit is a US cent')
    .option(...asJson)
    .action((options) => setBudget(processContext(), options));
}

/** Declares the command `usage`. */
export function declareUsage(command: Command): void {
  command
    .option('--from <day>', 'first day in UTC (default: 29 days before the last)')
    .option('--to <day>', 'last day in UTC (default: today)')
    .addOption(new Option('--by <groups...>', 'how to group the sums (default: day)').choices(usageDimensions))
    .option(...asJson)
    .action((options) => listUsage(processContext(), options));
}
