import { z } from 'zod';
import { parsePayloadFilter } from '../../automations/payload-filter/parse.ts';
import { maxFilterKeys, maxFilterLevels, maxFilterValues } from '../../automations/payload-filter/plan.ts';
import { maxFactoryWebhooks, maxStartsOfPullRequest, maxTriggers } from '../../limits.ts';
import { parseExpression } from '../../schedules/cron-expression.ts';
import {
  type GithubEvent,
  type GithubFilterKey,
  githubEvents,
  ownPullRequestEvents,
} from '../../webhooks/github-events.ts';
import { taskStages } from '../../wire/choices.ts';
import { NonBlank, Uid22 } from '../../wire/primitives.ts';
import { findTimeZone } from '../../wire/time-zone.ts';
import { ResourceName } from './execution.ts';
import { matcher, nameMatcher, numberMatcher, repositoryMatcher, textMatcher } from './matchers.ts';
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

const webhookUids = z
  .union([webhookIds, strictObject({ in: webhookIds.describe('The same list') }).transform(({ in: ids }) => ids)], {
    error: 'must be a list of UIDs of webhooks, which have 22 characters; names of files are not UIDs',
  })
  .describe('UIDs of webhooks of the factory; `GET /factory/{uid}/webhooks` lists them');

const filterOfDeliveries = {
  events: textMatcher.describe(
    'Names of events, from the header that the webhook or its scheme defines, such as X-Event-Key. A delivery without one matches only `not_in`',
  ),
  payload: PayloadFilter.optional(),
};

const webhookTrigger = <F extends z.ZodType>(filter: F) =>
  strictObject({
    provider: z.literal('webhook'),
    event: z.literal('received'),
    filter: filter.describe('Deliveries that start a run'),
  }).describe('A delivery to a webhook of the factory');

const WebhookTrigger = webhookTrigger(
  strictObject(
    { webhook_ids: webhookUids, ...filterOfDeliveries },
    {},
    'it lists the webhooks whose deliveries start a run, such as {"webhook_ids": ["UID"]}',
  ),
);

/** In a definition file, a webhook may also be named by its file, because it has no UID before the first apply. */
const WebhookTriggerOfFile = webhookTrigger(
  strictObject(
    {
      webhooks: z
        .array(ResourceName)
        .min(1)
        .max(maxFactoryWebhooks)
        .optional()
        .describe('Names of webhooks of this definition: `ci` is the file `webhooks/ci.yaml`'),
      webhook_ids: webhookUids.optional(),
      ...filterOfDeliveries,
    },
    {},
    'it lists the webhooks whose deliveries start a run, such as {"webhooks": ["ci"]}',
  ).refine(({ webhooks, webhook_ids: ids }) => webhooks !== undefined || ids !== undefined, {
    error: 'needs webhooks, or webhook_ids',
  }),
);

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
  { filter: 'a trigger has either schedule, or a filter with schedule_ids' },
).describe('A time of a schedule');

const scheduleIds = z.array(NonBlank.max(200)).min(1).max(maxTriggers);
/** A trigger that starts runs at the times of schedules of the team. */
const SharedScheduleTrigger = strictObject({
  provider: z.literal('schedule'),
  event: z.literal('cron_fired'),
  filter: strictObject({
    schedule_ids: z
      .union([scheduleIds, strictObject({ in: scheduleIds.describe('Ids of schedules') })])
      .describe('Ids of schedules of the team. Other ids are kept, reported, and never fire'),
  }).describe('Schedules whose times start a run'),
}).describe('A time of a schedule of the team');

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

const defaultStartsOfPullRequest = 3;

const ownPullRequest = strictObject({
  max_starts: z
    .int()
    .min(1)
    .max(maxStartsOfPullRequest)
    .default(defaultStartsOfPullRequest)
    .describe(
      `Largest number of runs that the automation starts for one pull request. Default: ${defaultStartsOfPullRequest}. Checks of one commit start one run`,
    ),
})
  .optional()
  .describe(
    'Only pull requests that a run of the team has reported and whose branch this run has pushed. The event must come from a GitHub App',
  );

const githubFilter = (keys: readonly GithubFilterKey[], hasOwn: boolean) =>
  strictObject({
    ...Object.fromEntries(keys.map((key) => [key, githubMatchers[key]])),
    ...(hasOwn ? { own_pull_request: ownPullRequest } : {}),
  });

/** Events of GitHub that accept the same filter share a schema. */
const GithubTriggers = [...new Set<readonly GithubFilterKey[]>(Object.values(githubEvents))].map((keys) => {
  const events = Object.entries(githubEvents).flatMap(([event, own]) => (own === keys ? [event as GithubEvent] : []));
  return strictObject({
    provider: z.literal('github'),
    event: z.enum(events).describe('Event on GitHub'),
    filter: githubFilter(
      keys,
      events.some((event) => ownPullRequestEvents.includes(event)),
    )
      .optional()
      .describe('Events that start a run; absent: all'),
  }).describe('An event that a webhook of the scheme github receives');
});

/** The stages of a task that a trigger may select. */
const stage = z.enum(taskStages);

const StageTrigger = strictObject({
  provider: z.literal('factory'),
  event: z.literal('work_item_stage_changed'),
  filter: strictObject({ stages: matcher(stage).describe('Stages that the task has moved into') })
    .optional()
    .describe('Moves that start a run; absent: all'),
}).describe('A task of the factory that has moved to another stage');

const providers = ['webhook', 'schedule', 'github', 'factory'] as const;
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
export const Trigger = z.union([
  WebhookTrigger,
  ScheduleTrigger,
  SharedScheduleTrigger,
  StageTrigger,
  ...GithubTriggers,
  OtherTrigger,
]);
/** The same event in a definition file. */
export const TriggerOfFile = z.union([
  WebhookTriggerOfFile,
  ScheduleTrigger,
  SharedScheduleTrigger,
  StageTrigger,
  ...GithubTriggers,
  OtherTrigger,
]);

/** Events of the supported providers. */
export const eventsOfProvider: Readonly<Record<(typeof providers)[number], readonly string[]>> = {
  webhook: ['received'],
  schedule: ['cron_fired'],
  github: Object.keys(githubEvents),
  factory: ['work_item_stage_changed'],
};
