/** The command `usage`: how much the team uses models. */
import type { UsageDimension, UsageRow, UsageThing } from '@runyard/contract/team/budgets';
import { usageDimensions } from '@runyard/contract/wire/choices';
import type { UserProfile } from '@runyard/contract/wire/profiles';
import { type Command, Option } from 'commander';
import { type Context, processContext } from '../../context/context.ts';
import { asJson } from '../../input/options.ts';
import { connect } from '../../service/connect.ts';
import { formatCount, formatUsd } from '../../terminal/amounts.ts';
import type { Column } from '../../terminal/columns.ts';
import { printList } from '../../terminal/list.ts';

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

/** Declares the command `usage`. */
export function declareUsage(command: Command): void {
  command
    .option('--from <day>', 'first day in UTC (default: 29 days before the last)')
    .option('--to <day>', 'last day in UTC (default: today)')
    .addOption(new Option('--by <groups...>', 'how to group the sums (default: day)').choices(usageDimensions))
    .option(...asJson)
    .action((options) => listUsage(processContext(), options));
}
