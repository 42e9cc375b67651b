import { teamReads } from '../wire/access.ts';
import { goneEvents, lastEventId, notOfStream, streamRules, tooManyStreams } from '../wire/event-streams.ts';
import type { Route } from '../wire/route.ts';
import {
  ListTeamAutomationsResponse,
  ListTeamDeliveriesQuery,
  ListTeamDeliveriesResponse,
  ListTeamThingsQuery,
  ListTeamWebhooksResponse,
  TeamDeliveryEvent,
} from './team-lists.ts';

const wrongPage = { 400: 'A wrong value, or a cursor of another list' };

export const teamTriggerRoutes = {
  listTeamWebhooks: {
    method: 'GET',
    path: '/webhooks',
    tag: 'webhooks',
    summary: 'List the webhooks of all factories',
    allow: teamReads,
    query: ListTeamThingsQuery,
    answer: { status: 200, description: 'A page of webhooks, by name', schema: ListTeamWebhooksResponse },
    errors: wrongPage,
  },
  listTeamAutomations: {
    method: 'GET',
    path: '/automations',
    tag: 'automations',
    summary: 'List the automations of all factories',
    allow: teamReads,
    query: ListTeamThingsQuery,
    answer: { status: 200, description: 'A page of automations, by name', schema: ListTeamAutomationsResponse },
    errors: wrongPage,
  },
  listTeamDeliveries: {
    method: 'GET',
    path: '/webhook-deliveries',
    tag: 'webhooks',
    summary: 'List the deliveries to the webhooks of all factories',
    description:
      'Newest first. If only few of many deliveries match the filters, a page may have fewer than `limit` entries, or none, although there is a next page: each page reads a limited number of deliveries.',
    allow: teamReads,
    query: ListTeamDeliveriesQuery,
    answer: { status: 200, description: 'A page of deliveries', schema: ListTeamDeliveriesResponse },
    errors: wrongPage,
  },
  streamTeamDeliveries: {
    method: 'GET',
    path: '/webhook-deliveries/events',
    tag: 'webhooks',
    summary: "Follow the deliveries to all of the team's webhooks live",
    description: `Server-sent events: \`id\`, \`event\` and \`data\`, a TeamDeliveryEvent as JSON: deliveries from now on (a moment before may be among it). A delivery that waited for the end of a run comes again when its outcome is known. ${streamRules} An \`id\` without \`data\` comes first and with each heartbeat: it continues from there. Ids are good for seven days. The stream does not end by itself.`,
    allow: teamReads,
    headers: { 'Last-Event-ID': lastEventId },
    answer: {
      status: 200,
      description: 'Stream of events',
      contentType: 'text/event-stream',
      eventSchema: TeamDeliveryEvent,
    },
    errors: { 400: notOfStream, 410: goneEvents, 429: tooManyStreams },
  },
} as const satisfies Record<string, Route>;
