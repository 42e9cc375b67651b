import { z } from 'zod';
import { PullRequestChangeType, PullRequestState } from '../runs/artifacts.ts';
import { NotifyEvent } from '../runs/notify.ts';
import { RunSourceType, RunState } from '../runs/states.ts';
import { pageMembers } from '../wire/pages.ts';
import { NonBlank, Text, Timestamp, Uuid, webAddressPattern } from '../wire/primitives.ts';
import { PageInfo } from '../wire/profiles.ts';

/** Types of events of runs that a subscription can select. */
export const RunEventType = z
  .enum(['run.created', 'run.started', 'run.blocked', 'run.ended', 'run.pull_request_changed'])
  .meta({
    id: 'RunEventType',
    description:
      'created: the run is queued. started: its agent works, for the first time or again after a retry, an answer or a follow-up. blocked: it waits for an answer; its state is FAILED if the sandbox of its failed setup asks. ended: it succeeded, failed, had an error or was cancelled; a follow-up may start it again. pull_request_changed: something happened to a pull request of the run, as a GitHub App of the team has seen it.',
  });
export type RunEventType = z.infer<typeof RunEventType>;

/** Types of deliveries. Only the test endpoint sends `ping`. */
export const DeliveredEventType = z.enum([...RunEventType.options, 'notification', 'ping']).meta({
  id: 'DeliveredEventType',
  description:
    'Type of a delivery. `notification`: a rule in `notify` of a schedule, an automation or a budget names the subscription. Only the test endpoint sends `ping`',
});
export type DeliveredEventType = z.infer<typeof DeliveredEventType>;

const PullRequestChange = z
  .object({
    url: z.string().describe('Page of the pull request'),
    status: PullRequestState.describe('State after the change'),
    change: PullRequestChangeType,
    login: z.string().describe('Login of the account that caused it'),
    is_person: z.boolean().describe('False: a bot or an App caused it'),
    conclusion: z.string().optional().describe('Of `checks_completed`: the result in the words of GitHub'),
  })
  .meta({ id: 'PullRequestChange', description: 'A change of a pull request' });

/** The run that an event is about, and the change of the run. */
export const EventData = z
  .object({
    run_id: z.string().optional().meta({ description: 'Absent in a ping, and in a notification that is about no run' }),
    state: RunState.optional().meta({ description: 'State of the run at that time' }),
    seq: z.int().optional().meta({
      description:
        'Number of the event in its run, as in the live stream. Deliveries may overtake each other: of two, the greater is the newer',
    }),
    conversation_id: z.string().optional().describe('Conversation of the run'),
    parent_run_id: z.string().optional().describe('Run that started this one'),
    result: z
      .unknown()
      .optional()
      .describe(
        'Result of a run that succeeded, if the run has an `output_schema` and the result has at most 64 KB. An agent wrote it',
      ),
    result_artifact_uid: z.string().optional().describe('UID of the artifact with a result that is larger than 256 KB'),
    pull_request: PullRequestChange.optional().describe('Of `run.pull_request_changed`: what happened'),
    on: NotifyEvent.optional().describe('Of a notification: what happened'),
    schedule_id: z.string().optional().describe('Of a notification: the schedule'),
    automation_id: z.string().optional().describe('Of a notification: UID of the automation'),
    error_code: z.string().optional().describe('Of a notification: error code of the run'),
    count: z.int().optional().describe('Of a notification: number of failed runs in a row, or of missed times'),
    is_paused: z.boolean().optional().describe('Of a notification: true if the schedule or automation was paused'),
    subscription_id: z.string().describe('Subscription that the delivery is for'),
    session_link: z.string().optional().meta({ description: 'Page of the run' }),
  })
  .meta({ id: 'EventData', description: 'The run of an event, and the change' });

/**
 * Body of a delivery, with a signature of Standard Webhooks. The body contains ids, states and the result of a run that
 * returns one. A receiver reads other details with a key.
 */
export const EventPayload = z
  .object({
    type: DeliveredEventType,
    timestamp: Timestamp.meta({ description: 'Time of the event, not of the delivery' }),
    data: EventData,
  })
  .meta({
    id: 'EventPayload',
    description:
      'Body of a delivery. It holds ids, states and the result of a run that returns one; other details are read with a key',
  });
export type EventPayload = z.infer<typeof EventPayload>;

/** Restricts a subscription to the runs that match every member of this filter. */
export const SubscriptionFilter = z
  .object({
    source: RunSourceType.optional().describe('Only runs that were created this way'),
    name: NonBlank.max(200).optional().meta({ description: '`config.name`, exactly' }),
    metadata: z
      .record(Text.max(200), Text.max(1000))
      .refine((pairs) => Object.keys(pairs).length <= 5, { error: 'takes at most 5 pairs' })
      .meta({ maxProperties: 5 })
      .optional()
      .meta({ description: 'All pairs must be in the metadata of the run' }),
  })
  .meta({ id: 'SubscriptionFilter', description: 'Restricts a subscription to runs that match every member' });
export type SubscriptionFilter = z.infer<typeof SubscriptionFilter>;

export const EventSubscription = z
  .object({
    id: Uuid.describe('Id of the subscription'),
    name: z.string().optional().describe('Name of the subscription'),
    url: z.string().describe('Address that deliveries go to'),
    events: z.array(RunEventType).describe('Events that are delivered'),
    filter: SubscriptionFilter.optional(),
    enabled: z.boolean().describe('False: no events are stored for it and none are delivered'),
    disabled_reason: z.string().optional().meta({ description: 'Why the service disabled the subscription' }),
    disabled_at: Timestamp.optional().describe('When it was disabled, RFC 3339 in UTC'),
    failing_since: Timestamp.optional().meta({
      description: 'First failed attempt since the last success, or since the end of two days without deliveries',
    }),
    created_at: Timestamp.describe('When it was created, RFC 3339 in UTC'),
    updated_at: Timestamp.describe('When it last changed, RFC 3339 in UTC'),
  })
  .meta({ id: 'EventSubscription', description: 'An address that events of runs are delivered to' });
export type EventSubscription = z.infer<typeof EventSubscription>;

const subscriptionUrl = Text.max(2000).regex(new RegExp(webAddressPattern), { error: 'must be an https:// URL' }).meta({
  description:
    'https, with port 80, 443 or a port from 1024 on, without user and password. http, and addresses that are not public, are allowed only by RUNYARD_ALLOW_PRIVATE_NETWORKS.',
});
const subscribedEvents = z
  .array(RunEventType)
  .min(1, { error: 'must name an event' })
  .transform((events) => [...new Set(events)]);

export const CreateEventSubscriptionRequest = z
  .object({
    name: NonBlank.max(200).optional().describe('Name for people, at most 200 characters'),
    url: subscriptionUrl,
    events: subscribedEvents.describe('Events to deliver, at least one'),
    filter: SubscriptionFilter.optional(),
    enabled: z.boolean().default(true).describe('False: it starts disabled'),
  })
  .meta({ id: 'CreateEventSubscriptionRequest', description: 'An event subscription to create' });
export type CreateEventSubscriptionRequest = z.infer<typeof CreateEventSubscriptionRequest>;

export const UpdateEventSubscriptionRequest = z
  .object({
    name: NonBlank.max(200).nullable().optional().describe('Name for people, at most 200 characters; null: none'),
    url: subscriptionUrl.optional(),
    events: subscribedEvents.optional().describe('Events to deliver, at least one'),
    filter: SubscriptionFilter.nullable().optional().describe('Restriction to some runs; null: none'),
    enabled: z.boolean().optional().meta({ description: 'true clears the reason and the record of failures' }),
  })
  .meta({ id: 'UpdateEventSubscriptionRequest', description: 'Absent members stay unchanged' });
export type UpdateEventSubscriptionRequest = z.infer<typeof UpdateEventSubscriptionRequest>;

/** A subscription with its secret. No other answer contains the secret. */
export const EventSubscriptionWithSecret = EventSubscription.extend({
  secret: z.string().meta({ description: 'whsec_ and 32 random bytes in base64. It is shown only once' }),
}).meta({ id: 'EventSubscriptionWithSecret', description: 'An event subscription with its secret' });
export type EventSubscriptionWithSecret = z.infer<typeof EventSubscriptionWithSecret>;

export const ListEventSubscriptionsResponse = z
  .object({
    subscriptions: z.array(EventSubscription).describe('Subscriptions of the team, oldest first'),
  })
  .meta({ id: 'ListEventSubscriptionsResponse', description: 'Event subscriptions of the team' });

/** One attempt to send a delivery. */
export const DeliveryAttempt = z
  .object({
    number: z
      .int()
      .meta({ description: 'From 1. A number is missing if the process died before it recorded the attempt' }),
    started_at: Timestamp.describe('When the attempt began, RFC 3339 in UTC'),
    duration_ms: z.int().describe('Milliseconds until the answer, or until the attempt failed'),
    status: z.int().optional().meta({ description: 'HTTP status of the answer; absent: no answer came' }),
    error: z.string().optional().meta({ description: 'Why it counts as failed' }),
  })
  .meta({ id: 'DeliveryAttempt', description: 'One attempt to deliver' });
export type DeliveryAttempt = z.infer<typeof DeliveryAttempt>;

export const DeliveryStatus = z.enum(['pending', 'delivered', 'failed']).meta({
  id: 'DeliveryStatus',
  description:
    'pending: not delivered yet, and attempts continue. failed: the service has given up; if the reason was a secret that could not be decrypted, the delivery is sent again as soon as the secret can be decrypted.',
});
export type DeliveryStatus = z.infer<typeof DeliveryStatus>;

export const EventDelivery = z
  .object({
    id: Uuid.meta({ description: 'The webhook-id header, the same in every attempt' }),
    event: DeliveredEventType,
    run_id: z.string().optional().describe('Run of the event; absent in a ping'),
    status: DeliveryStatus,
    occurred_at: Timestamp.describe('When the event happened, RFC 3339 in UTC'),
    next_attempt_at: Timestamp.optional().meta({ description: 'While pending' }),
    delivered_at: Timestamp.optional().describe('When a receiver accepted it, RFC 3339 in UTC; absent: not yet'),
    attempts: z.array(DeliveryAttempt).describe('Attempts so far, oldest first'),
  })
  .meta({ id: 'EventDelivery', description: 'One event on its way to a subscription' });
export type EventDelivery = z.infer<typeof EventDelivery>;

export const ListDeliveriesQuery = z.object({
  ...pageMembers('Deliveries'),
  status: DeliveryStatus.optional(),
});
export type ListDeliveriesQuery = z.infer<typeof ListDeliveriesQuery>;

export const ListEventDeliveriesResponse = z
  .object({
    deliveries: z.array(EventDelivery).describe('Deliveries, newest first'),
    page_info: PageInfo,
  })
  .meta({ id: 'ListEventDeliveriesResponse', description: 'A page of deliveries' });
export type ListEventDeliveriesResponse = z.infer<typeof ListEventDeliveriesResponse>;
