import { z } from 'zod';
import { parsePayloadFilter } from '../../automations/payload-filter/parse.ts';
import { maxFilterKeys, maxFilterLevels, maxFilterValues } from '../../automations/payload-filter/plan.ts';
import { maxFactoryWebhooks } from '../../limits.ts';
import { parseExpression } from '../../schedules/cron-expression.ts';
import { type GithubEvent, type GithubFilterKey, githubEvents } from '../../webhooks/github-events.ts';
import { NonBlank, Uid22 } from '../../wire/primitives.ts';
import { findTimeZone } from '../../wire/time-zone.ts';
import { nameMatcher, numberMatcher, repositoryMatcher, textMatcher } from './matchers.ts';
import { strictObject } from './strict-object.ts';

const webhookIds = z.array(Uid22).min(1).max(maxFactoryWebhooks);

/** A payload filter. The filter is stored unchanged. It is checked here by the same parser that the service uses to evaluate filters. */
const PayloadFilter = z
  .unknown()
  .superRefine((value, context) => {
    const parsed = parsePayloadFilter(value);
    if (parsed.ok) return;
    for (const { at, reason } of parsed.faults) context.addIssue({ code: 'custom', path: [...at], message: reason });
  })
  .meta({ type: 'object' })
  .describe(
    `Pattern that mirrors the body: \`{field: [values]}\`, \`{field: {in, not_in, exists}}\`, or nested fields; at most ${maxFilterLevels} levels, ${maxFilterKeys} keys and ${maxFilterValues} values a list`,
  );

const TimeZone = NonBlank.max(100).refine((name) => findTimeZone(name) !== null, {
  error: 'is not the name of an IANA time zone, such as Europe/Berlin or UTC',
});

const WebhookTrigger = strictObject({
  provider: z.literal('webhook'),
  event: z.literal('received'),
  filter: strictObject(
    {
      webhook_ids: z
        .union(
          [webhookIds, strictObject({ in: webhookIds.describe('The same list') }).transform(({ in: ids }) => ids)],
          { error: 'must be a list of UIDs of webhooks, which have 22 characters; names of files are not UIDs' },
        )
        .describe('UIDs of webhooks of the factory; `GET /factory/{uid}/webhooks` lists them'),
      events: textMatcher.describe(
        'Names of events, from the header that the webhook or its scheme defines, such as X-Event-Key. A delivery without one matches only `not_in`',
      ),
      payload: PayloadFilter.optional(),
    },
    {},
    'it lists the webhooks whose deliveries start a run, such as {"webhook_ids": ["UID"]}',
  ).describe('Deliveries that start a run'),
}).describe('A delivery to a webhook of the factory');

const Cron = NonBlank.max(200).superRefine((text, context) => {
  const parsed = parseExpression(text);
  if (!parsed.ok) context.addIssue({ code: 'custom', message: parsed.problem });
});

const ScheduleTrigger = strictObject(
  {
    provider: z.literal('schedule'),
    event: z.literal('cron_fired'),
    schedule: strictObject(
      {
        name: NonBlank.max(100)
          .optional()
          .describe(
            'Name of the schedule in the automation. A new name makes a new schedule; one may be without a name',
          ),
        cron: Cron.describe(
          'Five fields (minute, hour, day of the month, month, day of the week), a word such as @daily, or @every with a duration from 1m',
        ),
        timezone: TimeZone.optional().describe('IANA time zone of the fields. Default: UTC'),
      },
      {},
      'it defines when runs start, such as {"cron": "0 3 * * *"}',
    ).describe('When runs start'),
  },
  { filter: 'schedules are declared in the trigger, as `schedule`; leave this filter out' },
).describe('A time of a schedule');

const githubMatchers = {
  repos: repositoryMatcher.describe('Repositories, as owner/name'),
  branches: textMatcher.describe(
    'Pushed branch, or branch of the checked commit; `refs/heads/` may be left out. No push of a tag matches',
  ),
  base_branches: textMatcher.describe('Branch that the pull request goes into; `refs/heads/` may be left out'),
  paths: textMatcher.describe('Changed files: a path, or a pattern with `*`, `**` and `?`'),
  labels: nameMatcher.describe(
    'Label that was added, of the events `…_labeled`; of all others, the labels of the issue or pull request',
  ),
  authors: nameMatcher.describe('Login of the person who opened the issue or pull request'),
  assignees: nameMatcher.describe(
    'For the events `…_assigned`: login of the new assignee. For all other events: logins of all assignees',
  ),
  mentioned: nameMatcher.describe(
    "Logins, or teams as org/team, that the new text mentions with @. Code, quoted lines and the writer's own name do not count",
  ),
  writers: nameMatcher.describe('Login of the person who wrote the new text'),
  associations: nameMatcher.describe(
    'The role in the repository of the person who wrote the new text: OWNER, MEMBER, COLLABORATOR, CONTRIBUTOR, FIRST_TIME_CONTRIBUTOR, FIRST_TIMER, MANNEQUIN or NONE',
  ),
  reviewers: nameMatcher.describe('Login of the person who is asked for a review'),
  reviewer_teams: nameMatcher.describe('Slug of the team that is asked for a review'),
  review_states: nameMatcher.describe('State of the review: approved, changes_requested or commented'),
  workflows: textMatcher.describe('Name of the workflow'),
  conclusions: nameMatcher.describe('Result, such as success, failure or cancelled'),
  pr_numbers: numberMatcher.describe('Numbers of pull requests'),
} satisfies Record<GithubFilterKey, z.ZodType>;

const githubFilter = (keys: readonly GithubFilterKey[]) =>
  strictObject(Object.fromEntries(keys.map((key) => [key, githubMatchers[key]])));

/** Events of GitHub that accept the same filter share a schema. */
const GithubTriggers = [...new Set<readonly GithubFilterKey[]>(Object.values(githubEvents))].map((keys) => {
  const events = Object.entries(githubEvents).flatMap(([event, own]) => (own === keys ? [event as GithubEvent] : []));
  return strictObject({
    provider: z.literal('github'),
    event: z.enum(events).describe('Event on GitHub'),
    filter: githubFilter(keys).optional().describe('Events that start a run; absent: all'),
  }).describe('An event that a webhook of the scheme github receives');
});

const providers = ['webhook', 'schedule', 'github'] as const;
export const isAvailableProvider = (name: string): boolean => providers.some((each) => each === name);

/** Triggers of other providers are stored but never fire. */
const OtherTrigger = strictObject({
  provider: NonBlank.max(100)
    // Abort the check here, so that a faulty trigger of a supported provider never counts as a trigger of an unsupported provider.
    .refine((name) => !isAvailableProvider(name), { abort: true })
    .meta({ not: { enum: [...providers] } })
    .describe('A provider that this service does not have'),
  event: NonBlank.max(100).describe('Event of the provider'),
  filter: z.record(z.string(), z.unknown()).optional().describe('Kept as it is'),
}).describe('A trigger of another provider, which is kept and never fires');

/** The event that makes an automation start a run. */
export const Trigger = z.union([WebhookTrigger, ScheduleTrigger, ...GithubTriggers, OtherTrigger]);

/** Events of the supported providers. */
export const eventsOfProvider: Readonly<Record<(typeof providers)[number], readonly string[]>> = {
  webhook: ['received'],
  schedule: ['cron_fired'],
  github: Object.keys(githubEvents),
};
