import { z } from 'zod';
import { GithubTools } from '../environments/github-tools.ts';
import { checkScheduleNames } from '../factories/files/automation-file.ts';
import { ResourceName } from '../factories/files/execution.ts';
import { readUnknownKey } from '../factories/files/strict-object.ts';
import { eventsOfProvider, isAvailableProvider, Trigger } from '../factories/files/triggers.ts';
import { maxTriggers } from '../limits.ts';
import { WaitingAfterChange } from '../runs/acceptances.ts';
import { AmbientAgentConfig, RequestedAgentConfig } from '../runs/config.ts';
import { NotifyRules } from '../runs/notify.ts';
import { executorUid, OverlapPolicy } from '../schedules/schedules.ts';
import { maxChecksOfOutcome, TestFilterCheck } from '../webhooks/checks.ts';
import { plainMessage } from '../wire/plain-message.ts';
import { NonBlank, Timestamp, Uuid } from '../wire/primitives.ts';
import { PageInfo, UserProfile } from '../wire/profiles.ts';
import { storableJson } from '../wire/storable-json.ts';

type Issue = z.core.$ZodIssue;

const has = (issues: readonly Issue[], key: string): number => (issues.some(({ path }) => path[0] === key) ? 1 : 0);

/** Returns only the issues about the kind of trigger that the request probably means: the kind with a matching provider and event. */
function issuesOfMeant(issues: readonly Issue[]): readonly Issue[] {
  const [union] = issues;
  if (union?.code !== 'invalid_union' || union.path.length > 0) return issues;
  const [best] = union.errors.toSorted(
    (a, b) => has(a, 'provider') - has(b, 'provider') || has(a, 'event') - has(b, 'event') || a.length - b.length,
  );
  return best ?? issues;
}

/** Returns true for a value that the database can store unchanged. */
function isStorable(value: unknown): boolean {
  try {
    return storableJson(value) === JSON.stringify(value);
  } catch {
    // JSON.stringify throws if the value is nested too deeply for the stack.
    return false;
  }
}

/** Checks a trigger by the rules of definition files. */
function checkTrigger(trigger: unknown, context: z.RefinementCtx): void {
  if (!isStorable(trigger)) {
    context.addIssue({
      code: 'custom',
      message: 'must not nest very deep, or contain U+0000, a lone surrogate or the name __proto__',
    });
    return;
  }
  const checked = Trigger.safeParse(trigger, { error: plainMessage });
  if (checked.success) return;
  const add = (path: readonly PropertyKey[], message: string) =>
    context.addIssue({ code: 'custom', path: [...path], message });
  const { provider, event } = trigger as { readonly provider: string; readonly event: string };
  if (isAvailableProvider(provider)) {
    const events = eventsOfProvider[provider as keyof typeof eventsOfProvider];
    if (!events.includes(event)) {
      add(['event'], `is no event of ${provider}; it has ${events.join(', ')}`);
      return;
    }
  }
  for (const issue of issuesOfMeant(checked.error.issues)) {
    if (issue.code !== 'unrecognized_keys') add(issue.path, issue.message);
    else
      for (const [index, key] of issue.keys.entries())
        add([...issue.path, key], readUnknownKey(issue.message.split('\n')[index] ?? 'is not a known key').message);
  }
}

const AutomationSchedule = z
  .looseObject({
    name: NonBlank.max(100)
      .optional()
      .describe(
        'Name of the schedule in the automation; one may be without a name. The schedule keeps times and history while the name stays the same',
      ),
    cron: NonBlank.max(200).describe('Five fields, a word such as @daily, or @every with a duration from 1m'),
    timezone: NonBlank.max(100)
      .optional()
      .describe('IANA time zone in which the fields are read, such as Europe/Berlin. Default: UTC'),
  })
  .meta({ id: 'AutomationSchedule', description: 'The times of a schedule trigger' });

const triggerMembers = z.looseObject({
  provider: NonBlank.max(100).describe(
    '`webhook`, with the event `received`; `schedule`, with the event `cron_fired`; `factory`, with the event `work_item_stage_changed`; `github`, fed by the webhooks of the factory with the signature scheme github. Others are kept and never fire',
  ),
  event: NonBlank.max(100).describe('Event of the provider'),
  filter: z
    .record(z.string(), z.unknown())
    .optional()
    .describe(
      'Of `webhook`: `webhook_ids`, the UIDs of webhooks of the factory, and `payload`, a payload filter. Of `github`: lists such as `repos`, `branches`, `labels` and `authors`. Of `factory`: `stages` that a task has moved into. Of `schedule`: `schedule_ids`, the ids of schedules of the team, instead of the member `schedule`',
    ),
  schedule: AutomationSchedule.optional().describe('Only for the provider `schedule`'),
});

/** A trigger of an automation, in the same format as in definition files. */
export const AutomationTrigger = triggerMembers
  .superRefine(checkTrigger)
  .meta({ id: 'AutomationTrigger', description: 'An event that starts a run' });
export type AutomationTrigger = z.infer<typeof AutomationTrigger>;

const concurrencyKey = z
  .string()
  .regex(/^[^.\s]{1,100}(?:\.[^.\s]{1,100}){0,9}$/, {
    error: 'must be names of fields with dots between them, such as data.id, at most 10',
  })
  .describe(
    'Field of the payload, such as data.id: overlap looks only at runs whose payload has the same value there. Payloads without a text, number or boolean there form one group, and so do all times of schedules',
  );

const overlap = OverlapPolicy.default('allow').describe(
  'What happens to a delivery that matches, or at a time of a schedule, while a run of the automation is live. allow: a run starts. skip: none starts. queue: it starts when the other has ended; at most 10 wait. cancel_previous: the live run is cancelled, and a run starts',
);

const githubTools = {
  github_tools: GithubTools.optional().describe(
    'How often each run of the automation may use each tool that writes on GitHub, instead of `github_tools` of the environment. {}: never. Absent: the environment decides',
  ),
};

const RequestedAutomationConfig = RequestedAgentConfig.safeExtend(githubTools).meta({
  id: 'RequestedAutomationConfig',
  description: 'Configuration of the runs of an automation; skill_spec and skills exclude each other',
  not: { required: ['skill_spec', 'skills'] },
});

const AutomationConfig = AmbientAgentConfig.extend(githubTools).meta({
  id: 'AutomationConfig',
  description: 'Configuration of the runs of an automation. Unknown members are stored and returned',
});
export type AutomationConfig = z.infer<typeof AutomationConfig>;

const requested = {
  name: NonBlank.max(100).describe('Name of the automation; each only once in a factory'),
  prompt: NonBlank.describe(
    'Prompt of the runs. For a delivery the service adds which webhook and delivery started the run, and attaches the body of the delivery as event-payload.json',
  ),
  enabled: z
    .boolean()
    .default(true)
    .describe('False: it starts no runs. True also resumes it after a pause because of failures'),
  agent: ResourceName.optional().describe(
    'Agent of the factory that gets the runs, with its configuration and instructions. Default: the foreman',
  ),
  triggers: z
    .array(AutomationTrigger)
    .min(1)
    .max(maxTriggers)
    .superRefine(checkScheduleNames)
    .describe(`Events that start runs, 1 to ${maxTriggers}; one delivery starts one run, also if several match`),
  config: RequestedAutomationConfig.optional(),
  overlap,
  concurrency_key: concurrencyKey.optional(),
  executor_uid: executorUid.optional(),
  notify: NotifyRules.optional(),
};

/** `POST /factory/{factoryUid}/automations`. */
export const CreateAutomationRequest = z
  .object(requested)
  .meta({ id: 'CreateAutomationRequest', description: 'An automation to create' });
export type CreateAutomationRequest = z.infer<typeof CreateAutomationRequest>;

/** `PUT /factory/{factoryUid}/automations/{automationUid}`. */
export const UpdateAutomationRequest = z.object(requested).meta({
  id: 'UpdateAutomationRequest',
  description: 'The whole automation; absent members get their defaults, except executor_uid and notify',
});
export type UpdateAutomationRequest = z.infer<typeof UpdateAutomationRequest>;

const AutomationScheduleItem = z
  .object({
    schedule_id: Uuid.describe('Id of the schedule; `schedule.schedule_id` of the runs that it starts'),
    name: z.string().optional().describe('Name of the schedule in the automation'),
    cron: z.string().describe('When it fires'),
    timezone: z.string().describe('IANA time zone in which the fields are read'),
    next_run: Timestamp.nullable().describe('When it fires next, RFC 3339 in UTC; null: the automation is disabled'),
    last_ran: Timestamp.nullable().describe('When it last started a run, RFC 3339 in UTC; null: never'),
  })
  .meta({ id: 'AutomationScheduleItem', description: 'The times of a schedule trigger as the service keeps them' });

export const Automation = z
  .object({
    uid: z.string().describe('UID of the automation, 22 characters'),
    name: z.string().describe('Name of the automation'),
    prompt: z.string().describe('Prompt of the runs'),
    enabled: z.boolean().describe('False: it starts no runs'),
    agent: z.string().optional().describe('Agent of the factory that gets the runs; absent: the foreman'),
    triggers: z
      .array(triggerMembers.meta({ id: 'StoredAutomationTrigger', description: 'An event that starts a run' }))
      .describe('Events that start runs'),
    schedules: z
      .array(AutomationScheduleItem)
      .optional()
      .describe('The schedules of its triggers, with their next times; absent: it has none'),
    config: AutomationConfig.optional().describe('Members that replace the members of the agent and of the factory'),
    overlap: OverlapPolicy,
    concurrency_key: z
      .string()
      .optional()
      .describe('Field of the payload whose value separates the runs for the overlap policy'),
    notify: NotifyRules.optional(),
    problems: z
      .array(z.string())
      .optional()
      .describe('Why it does not fire, such as a deleted webhook; absent: no reason is known'),
    last_spawn_error: z
      .string()
      .nullable()
      .describe(
        'The reason why its last run could not be created; null if it was created. After 10 such failures in a row, or 10 failed runs in a row, the automation is disabled, and this text says so. Temporary failures do not count: an outage of the model, a used-up budget',
      ),
    created_at: Timestamp.describe('When it was created, RFC 3339 in UTC'),
    updated_at: Timestamp.describe('When it last changed, RFC 3339 in UTC'),
    created_by: UserProfile.optional().meta({ description: 'Person or agent that created it' }),
    updated_by: UserProfile.optional().meta({ description: 'Person or agent that created or last replaced it' }),
    waiting: WaitingAfterChange.optional(),
    executor: UserProfile.optional().meta({
      description: 'Person or agent as whom its runs act. An edit does not change it; `executor_uid` does',
    }),
  })
  .meta({ id: 'Automation', description: 'A prompt that becomes a run when a trigger fires' });
export type Automation = z.infer<typeof Automation>;

export const ListAutomationsResponse = z
  .object({
    automations: z.array(Automation).describe('Automations of the factory, by name'),
    page_info: PageInfo,
  })
  .meta({ id: 'ListAutomationsResponse', description: 'Automations of a factory' });
export type ListAutomationsResponse = z.infer<typeof ListAutomationsResponse>;

/** `POST /factory/{factoryUid}/automations/test-filter`. */
export const TestFilterRequest = z
  .object({
    filter: z.unknown().describe('Payload filter, as in `triggers[].filter.payload`'),
    payload: z.unknown().optional().describe('JSON body to compare with; not together with delivery_id'),
    delivery_id: Uuid.optional().describe('Accepted delivery to a webhook of the factory, whose payload is compared'),
  })
  .refine((request) => Object.hasOwn(request, 'payload') !== (request.delivery_id !== undefined), {
    error: 'needs exactly one of payload and delivery_id',
    path: ['payload'],
  })
  .meta({
    id: 'TestFilterRequest',
    description: 'A payload filter, and what to compare it with',
    allOf: [{ oneOf: [{ required: ['payload'] }, { required: ['delivery_id'] }] }],
  });
export type TestFilterRequest = z.infer<typeof TestFilterRequest>;

export const TestFilterResponse = z
  .object({
    would_trigger: z.boolean().describe('True: a delivery with this body matches the filter'),
    checks: z.array(TestFilterCheck).describe('Each condition of the filter'),
  })
  .meta({ id: 'TestFilterResponse', description: 'Whether a body matches a payload filter, and why' });
export type TestFilterResponse = z.infer<typeof TestFilterResponse>;

/** `POST /factory/{factoryUid}/automations/test-filter/deliveries`. */
export const TestFilterDeliveriesRequest = z
  .object({
    filter: z.unknown().describe('Payload filter, as in `triggers[].filter.payload`'),
    webhook_uid: z.string().max(100).describe('Webhook of the factory whose stored deliveries are compared'),
    limit: z.int().min(1).max(100).default(20).describe('Deliveries to compare, the newest first, 1 to 100'),
  })
  .meta({ id: 'TestFilterDeliveriesRequest', description: 'A payload filter, and the deliveries to compare it with' });
export type TestFilterDeliveriesRequest = z.infer<typeof TestFilterDeliveriesRequest>;

const TestedDelivery = z
  .object({
    delivery_id: Uuid.describe('Id of the delivery'),
    received_at: Timestamp.describe('When it was received, RFC 3339 in UTC'),
    event: z.string().optional().describe('Name of the event; absent: no header named it'),
    would_trigger: z.boolean().describe('True: it matches the filter'),
    checks: z
      .array(TestFilterCheck)
      .describe(`Conditions that it does not meet, the first ${maxChecksOfOutcome}; none: it matches`),
  })
  .meta({ id: 'TestedDelivery', description: 'A stored delivery, and why it does not match a payload filter' });

export const TestFilterDeliveriesResponse = z
  .object({
    compared: z
      .int()
      .describe(
        'Number of compared deliveries: fewer than limit if the log has no more payloads, or if they are large or the filter needs many comparisons',
      ),
    matched: z.int().describe('How many of them match'),
    deliveries: z.array(TestedDelivery).describe('The compared deliveries, newest first'),
  })
  .meta({ id: 'TestFilterDeliveriesResponse', description: 'How a payload filter decides about stored deliveries' });
export type TestFilterDeliveriesResponse = z.infer<typeof TestFilterDeliveriesResponse>;
