/** Limits of a team's spending on models, and reports of the team's usage. */
import { z } from 'zod';
import { BudgetNotifyRules } from '../runs/notify.ts';
import { usageDimensions } from '../wire/choices.ts';
import { pageMembers } from '../wire/pages.ts';
import { Timestamp } from '../wire/primitives.ts';
import { PageInfo, UserProfile } from '../wire/profiles.ts';

export const TeamBudget = z
  .object({
    month: z.string().describe('Calendar month in UTC that the spend is of, such as 2026-11'),
    spent_usd: z.number().describe('US dollars that the team spent on models this month, as far as prices are known'),
    monthly_limit_usd: z
      .number()
      .optional()
      .describe('US dollars that the team may spend in a month; absent: no limit'),
    credits: z
      .number()
      .optional()
      .describe(
        'Credits that the team has left; a credit is a US cent. The last answers can make it negative. Absent: the team does not use credits',
      ),
    notify: BudgetNotifyRules.optional(),
    updated_at: Timestamp.optional().describe('When the limits were last changed, RFC 3339 in UTC; absent: never'),
  })
  .meta({ id: 'TeamBudget', description: 'The limits of a team for models, and its spending this month' });
export type TeamBudget = z.infer<typeof TeamBudget>;

const amount = (max: number) => z.number().min(0).max(max);

export const UpdateTeamBudgetRequest = z
  .object({
    monthly_limit_usd: amount(1_000_000_000)
      .nullable()
      .optional()
      .describe('US dollars of a calendar month in UTC; null: no limit'),
    credits: amount(100_000_000_000)
      .nullable()
      .optional()
      .describe('Credits that the team has from now on; null: the team does not use credits'),
    notify: BudgetNotifyRules.optional(),
  })
  .meta({ id: 'UpdateTeamBudgetRequest', description: 'Absent members stay unchanged' });
export type UpdateTeamBudgetRequest = z.infer<typeof UpdateTeamBudgetRequest>;

/** Ways to break a usage report down. */
export const UsageDimension = z
  .enum(usageDimensions)
  .meta({ id: 'UsageDimension', description: 'The groups of a usage report' });
export type UsageDimension = z.infer<typeof UsageDimension>;

const Day = z.iso.date();

export const UsageQuery = z.object({
  from: Day.optional().describe('First day in UTC, such as 2026-11-01; absent: 29 days before the last day'),
  to: Day.optional().describe('Last day in UTC; absent: today'),
  group_by: z
    .array(UsageDimension)
    .max(usageDimensions.length)
    .optional()
    .meta({ description: 'The groups of the sums; repeat the parameter for several. Absent: day' }),
  ...pageMembers('Rows', { most: 500, usual: 100 }),
});
export type UsageQuery = z.infer<typeof UsageQuery>;

const UsageThingKind = z.enum(['known', 'none', 'not_known']).meta({
  id: 'UsageThingKind',
  description: '`none`: the runs had none. `not_known`: the usage is older than its records',
});

const UsageThing = z
  .object({
    kind: UsageThingKind,
    uid: z.string().optional().describe('Its UID; present when known'),
    name: z.string().optional().describe('Its present name; absent: it was deleted, or belongs to another team'),
  })
  .meta({ id: 'UsageThing', description: 'Automation, factory or environment of the runs of a group' });
export type UsageThing = z.infer<typeof UsageThing>;

export const UsageRow = z
  .object({
    day: z.string().optional().describe('Day in UTC; present when grouped by day'),
    model_id: z.string().optional().describe('Model; present when grouped by model'),
    agent: UserProfile.optional().describe('The executor of the runs; present when grouped by agent'),
    creator: UserProfile.optional().describe('The creator of the runs; present when grouped by creator'),
    automation: UsageThing.optional().describe(
      'Automation that started the runs or the runs above them; present when grouped by automation',
    ),
    factory: UsageThing.optional().describe('Factory whose agent executed the runs; present when grouped by factory'),
    environment: UsageThing.optional().describe('Environment of the runs; present when grouped by environment'),
    requests: z.int().describe('Requests to models'),
    input_tokens: z.int().describe('Tokens that were neither read from nor written to a cache'),
    output_tokens: z.int().describe('Tokens of answers'),
    cache_read_tokens: z.int().describe('Tokens read from a cache'),
    cache_write_tokens: z.int().describe('Tokens written to a cache'),
    cost_usd: z.number().describe('US dollars of the requests with a known cost'),
    credits: z.number().describe('The same in credits; a credit is a US cent'),
    unpriced_requests: z.int().describe('Requests that used tokens but have an unknown cost'),
  })
  .meta({ id: 'UsageRow', description: 'Sums of one group of requests to models' });
export type UsageRow = z.infer<typeof UsageRow>;

const StorageUse = z
  .object({
    bytes: z
      .int()
      .describe(
        'Bytes of all that the team stores: requests with attachments, follow-ups, conversations, transcripts, artifacts, kept workspaces and memories, handoffs, changed files',
      ),
    max_bytes: z
      .int()
      .describe('Largest number of bytes that they may have together; short requests may use a sixteenth more'),
  })
  .meta({ id: 'StorageUse', description: 'What the team stores now' });

const UsageScope = z.enum(['team', 'own']).meta({
  id: 'UsageScope',
  description: '`own`: only runs that the caller created, because the caller is no administrator',
});

export const UsageReport = z
  .object({
    from: z.string().describe('First day of the report, in UTC'),
    to: z.string().describe('Last day of the report, in UTC'),
    scope: UsageScope,
    storage: StorageUse.optional().describe('Present for administrators'),
    usage: z.array(UsageRow).describe('Sums, in the order of their groups'),
    page_info: PageInfo,
  })
  .meta({ id: 'UsageReport', description: 'A page of the usage of models by the team' });
export type UsageReport = z.infer<typeof UsageReport>;
