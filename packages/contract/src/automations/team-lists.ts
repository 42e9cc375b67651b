/** Webhooks, automations and deliveries of all factories of a team. */
import { z } from 'zod';
import { FireOutcome } from '../schedules/schedules.ts';
import { Webhook, WebhookDelivery, WebhookDeliveryLabel } from '../webhooks/webhooks.ts';
import { pageMembers } from '../wire/pages.ts';
import { NonBlank, Timestamp, Uuid } from '../wire/primitives.ts';
import { PageInfo } from '../wire/profiles.ts';
import { QueryTime } from '../wire/query-time.ts';
import { Automation } from './automations.ts';

/** Maximum number of events that a count of the last 24 hours includes, for each webhook or automation. The newest events count. */
export const maxCountedEvents = 10_000;

const counted = `in the last 24 hours, of the newest ${maxCountedEvents.toLocaleString('en')}`;
const uid = (what: string) => z.string().max(100).optional().describe(`Only entries of this ${what}`);
const page = {
  ...pageMembers('Entries', { usual: 50 }),
};
const ofFactory = {
  factory_uid: z.string().describe('UID of its factory'),
  factory_name: z.string().describe('Name of its factory'),
};

export const ListTeamThingsQuery = z.object({ ...page, factory_uid: uid('factory') });
export type ListTeamThingsQuery = z.infer<typeof ListTeamThingsQuery>;

const WebhookCounts = z
  .object({
    accepted: z.int().describe('Accepted deliveries'),
    duplicate: z.int().describe('Duplicates'),
    rejected: z.int().describe('Refused deliveries'),
  })
  .meta({ id: 'WebhookCounts', description: `Deliveries to a webhook ${counted}` });

const LastDelivery = z
  .object({
    delivery_id: Uuid.describe('Id of the delivery'),
    label: WebhookDeliveryLabel,
    received_at: Timestamp.describe('When it was received, RFC 3339 in UTC'),
    runs: z.int().describe('Number of runs that it started'),
  })
  .meta({ id: 'LastDelivery', description: 'The newest delivery to a webhook' });

export const TeamWebhook = Webhook.extend({
  ...ofFactory,
  last_24_hours: WebhookCounts,
  last_delivery: LastDelivery.optional().describe('Absent: the log has no delivery'),
}).meta({ id: 'TeamWebhook', description: 'A webhook with its factory and its deliveries in numbers' });
export type TeamWebhook = z.infer<typeof TeamWebhook>;

export const ListTeamWebhooksResponse = z
  .object({ webhooks: z.array(TeamWebhook).describe('Webhooks, by name'), page_info: PageInfo })
  .meta({ id: 'ListTeamWebhooksResponse', description: 'A page of the webhooks of a team' });
export type ListTeamWebhooksResponse = z.infer<typeof ListTeamWebhooksResponse>;

const StartCounts = z
  .object({
    started: z.int().describe('Events that started a run'),
    skipped: z.int().describe('Events that its overlap policy skipped'),
    waiting: z.int().describe('Events that wait for the end of a run'),
    failed: z.int().describe('Events whose run could not be created'),
  })
  .meta({ id: 'StartCounts', description: `Events that an automation matched ${counted}` });

const LastFire = z
  .object({
    fired_at: Timestamp.describe('When the event came, RFC 3339 in UTC'),
    outcome: FireOutcome,
    reason: z.string().optional().describe('Why it started no run'),
    run_id: z.string().optional().describe('Run that it started'),
    webhook_uid: z.string().optional().describe('Webhook of the delivery; absent: a time of a schedule'),
    delivery_id: z.string().optional().describe('The delivery; absent: a time of a schedule'),
  })
  .meta({ id: 'LastFire', description: 'The newest event that an automation matched' });

export const TeamAutomation = Automation.omit({ prompt: true, config: true })
  .extend({
    ...ofFactory,
    last_24_hours: StartCounts,
    last_fire: LastFire.optional().describe('Absent: it has not fired in the last 30 days'),
  })
  .meta({
    id: 'TeamAutomation',
    description: 'An automation with its factory and its events in numbers, without prompt and configuration',
  });
export type TeamAutomation = z.infer<typeof TeamAutomation>;

export const ListTeamAutomationsResponse = z
  .object({ automations: z.array(TeamAutomation).describe('Automations, by name'), page_info: PageInfo })
  .meta({ id: 'ListTeamAutomationsResponse', description: 'A page of the automations of a team' });
export type ListTeamAutomationsResponse = z.infer<typeof ListTeamAutomationsResponse>;

export const ListTeamDeliveriesQuery = z.object({
  ...page,
  factory_uid: uid('factory'),
  webhook_uid: uid('webhook'),
  label: WebhookDeliveryLabel.optional(),
  event: NonBlank.max(100).optional().describe('Only deliveries with exactly this event name'),
  started: z
    .boolean()
    .optional()
    .describe('true: only deliveries that started runs; false: only deliveries that started none'),
  received_after: QueryTime.optional().describe(
    'Only deliveries that were received at this time or later: RFC 3339 with Z or an offset',
  ),
  received_before: QueryTime.optional().describe(
    'Only deliveries that were received before this time: RFC 3339 with Z or an offset',
  ),
});
export type ListTeamDeliveriesQuery = z.infer<typeof ListTeamDeliveriesQuery>;

export const TeamWebhookDelivery = WebhookDelivery.extend({
  webhook_uid: z.string().describe('UID of the webhook'),
  webhook_name: z.string().describe('Name of the webhook'),
  factory_uid: z.string().describe('UID of the factory of the webhook'),
}).meta({ id: 'TeamWebhookDelivery', description: 'An entry of the log of a webhook, with its webhook' });
export type TeamWebhookDelivery = z.infer<typeof TeamWebhookDelivery>;

export const ListTeamDeliveriesResponse = z
  .object({
    deliveries: z.array(TeamWebhookDelivery).describe('Deliveries, newest first'),
    page_info: PageInfo,
  })
  .meta({
    id: 'ListTeamDeliveriesResponse',
    description: 'A page of the deliveries to the webhooks of a team',
  });
export type ListTeamDeliveriesResponse = z.infer<typeof ListTeamDeliveriesResponse>;

export const TeamDeliveryEvent = z
  .object({
    type: z.literal('delivery').describe('Kind of the event'),
    delivery: TeamWebhookDelivery,
  })
  .meta({
    id: 'TeamDeliveryEvent',
    description: 'A delivery was received, or a waiting delivery got its outcome, as the JSON of its `data`',
  });
export type TeamDeliveryEvent = z.infer<typeof TeamDeliveryEvent>;
