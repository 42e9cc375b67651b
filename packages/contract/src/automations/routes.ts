import { z } from 'zod';
import { maxAutomationBytes, maxFactoryAutomations, maxWebhookBytes } from '../limits.ts';
import { ListScheduleFiresQuery, ListScheduleFiresResponse } from '../schedules/schedules.ts';
import {
  DryRunRequest,
  SimulateDeliveryRequest,
  SimulateDeliveryResponse,
  SimulatedStart,
} from '../webhooks/simulations.ts';
import { teamReads, teamWrites } from '../wire/access.ts';
import { DeleteResponse } from '../wire/bodies.ts';
import type { Route } from '../wire/route.ts';
import {
  Automation,
  CreateAutomationRequest,
  ListAutomationsResponse,
  TestFilterDeliveriesRequest,
  TestFilterDeliveriesResponse,
  TestFilterRequest,
  TestFilterResponse,
  UpdateAutomationRequest,
} from './automations.ts';

const factory = z.object({ factoryUid: z.string().meta({ description: 'UID of the factory' }) });
const automation = factory.extend({ automationUid: z.string().meta({ description: 'UID of the automation' }) });
const noFactory = 'No such factory, or it belongs to another team';
const noAutomation = 'No such automation, or it belongs to another factory or team';
const badAutomation =
  'A wrong value, a trigger that is not valid, an unknown webhook or agent, or a run that could not be created: an unknown model, harness or environment';
const tooLarge = `The body is larger than ${maxAutomationBytes / 1024} KB`;
const foreign =
  'The environment or MCP server does not exist or belongs to another team, or a secret belongs to others';

/**
 * Members of the team are accepted, but agent keys are not. The reason: as long as an automation exists, it starts runs with the
 * rights of the person who edited it last.
 */
const members = { user: 'member' } as const;

const path = '/factory/{factoryUid}/automations';
const onePath = `${path}/{automationUid}` as const;

const maxSimulationBytes = maxWebhookBytes + 1024;
const simulationErrors = {
  400: 'Not exactly one of payload and delivery_id, or a payload that a webhook would not accept',
  413: `The body is larger than ${maxSimulationBytes / 1024} KB`,
};
const webhook = factory.extend({ webhookUid: z.string().meta({ description: 'UID of the webhook' }) });

export const automationRoutes = {
  listAutomations: {
    method: 'GET',
    path,
    tag: 'automations',
    summary: 'List the automations of a factory',
    allow: teamReads,
    params: factory,
    answer: { status: 200, description: 'All of the factory, by name', schema: ListAutomationsResponse },
    errors: { 404: noFactory },
  },
  createAutomation: {
    method: 'POST',
    path,
    tag: 'automations',
    summary: 'Create an automation',
    description:
      'Its runs act as its executor, at first the caller, and only while the executor may start runs of the team. The configuration is checked as for a run that the executor creates now.',
    allow: members,
    params: factory,
    body: CreateAutomationRequest,
    bodyLimitBytes: maxAutomationBytes,
    once: 'createAutomation',
    answer: { status: 201, description: 'Created', schema: Automation },
    errors: {
      400: badAutomation,
      403: foreign,
      404: noFactory,
      409: `The factory has ${maxFactoryAutomations} automations, or one with this name, or the Idempotency-Key was used with another body`,
      413: tooLarge,
    },
  },
  getAutomation: {
    method: 'GET',
    path: onePath,
    tag: 'automations',
    summary: 'Read an automation',
    allow: teamReads,
    params: automation,
    answer: { status: 200, description: 'The automation', schema: Automation },
    errors: { 404: noAutomation },
  },
  updateAutomation: {
    method: 'PUT',
    path: onePath,
    tag: 'automations',
    summary: 'Replace an automation',
    description: 'Its runs act as the caller from now on. Runs that have started continue.',
    allow: members,
    params: automation,
    body: UpdateAutomationRequest,
    bodyLimitBytes: maxAutomationBytes,
    answer: { status: 200, description: 'The automation as it is now', schema: Automation },
    errors: {
      400: badAutomation,
      403: foreign,
      404: noAutomation,
      409: 'The factory has another automation with this name',
      413: tooLarge,
    },
  },
  deleteAutomation: {
    method: 'DELETE',
    path: onePath,
    tag: 'automations',
    summary: 'Delete an automation',
    description:
      'It starts no more runs, and its waiting starts are dropped. Its runs are kept, and live runs continue.',
    allow: members,
    params: automation,
    answer: { status: 200, description: 'Deleted', schema: DeleteResponse },
    errors: { 404: noAutomation },
  },
  listAutomationFires: {
    method: 'GET',
    path: `${onePath}/history`,
    tag: 'automations',
    summary: 'List the fires of the schedule triggers of an automation, newest first',
    description:
      'Kept for 30 days, and as long as the automation has the schedule. Deliveries are in the logs of their webhooks.',
    allow: teamReads,
    params: automation,
    query: ListScheduleFiresQuery,
    answer: { status: 200, description: 'A page of fires', schema: ListScheduleFiresResponse },
    errors: { 400: 'A wrong value, or a cursor of another list', 404: noAutomation },
  },
  testFilter: {
    method: 'POST',
    path: `${path}/test-filter`,
    tag: 'automations',
    summary: 'Compare a payload filter with a payload',
    description: 'Starts nothing. Callers need the role of a member: payloads may be confidential.',
    allow: teamWrites,
    params: factory,
    body: TestFilterRequest,
    bodyLimitBytes: maxAutomationBytes + maxWebhookBytes,
    answer: { status: 200, description: 'Whether it matches, and why', schema: TestFilterResponse },
    errors: {
      400: 'A filter that is not valid, or not exactly one of payload and delivery_id',
      404: 'No such factory, or the factory has no such delivery with a stored payload',
      413: `The body is larger than ${(maxAutomationBytes + maxWebhookBytes) / 1024} KB`,
    },
  },
  testFilterOnDeliveries: {
    method: 'POST',
    path: `${path}/test-filter/deliveries`,
    tag: 'automations',
    summary: 'Compare a payload filter with the last deliveries of a webhook',
    description:
      'Says of each stored delivery whether it matches, and why not. Starts nothing. Callers need the role of a member: payloads may be confidential.',
    allow: teamWrites,
    params: factory,
    body: TestFilterDeliveriesRequest,
    bodyLimitBytes: maxAutomationBytes,
    answer: {
      status: 200,
      description: 'Whether each delivery matches the filter',
      schema: TestFilterDeliveriesResponse,
    },
    errors: {
      400: 'A wrong value, or a filter that is not valid',
      404: 'No such factory, or the factory has no such webhook',
      413: tooLarge,
    },
  },
  dryRunAutomation: {
    method: 'POST',
    path: `${onePath}/dry-run`,
    tag: 'automations',
    summary: 'Show the run that a delivery, or a time of a schedule, would start',
    description:
      'Starts and stores nothing. Shows whether a trigger matches, which run would start, and every reason that would refuse it now, such as a disabled or deleted webhook. Callers need the role of a member: payloads may be confidential.',
    allow: teamWrites,
    params: automation,
    body: DryRunRequest,
    bodyLimitBytes: maxSimulationBytes,
    answer: {
      status: 200,
      description: 'The run that the automation would start for the event',
      schema: SimulatedStart,
    },
    errors: {
      ...simulationErrors,
      400: 'Not exactly one of payload, delivery_id and schedule_name, a payload that a webhook would not accept, no trigger that accepts deliveries, or no schedule trigger with this name',
      404: 'No such automation, webhook or delivery with a stored payload in the factory',
    },
  },
  simulateDelivery: {
    method: 'POST',
    path: '/factory/{factoryUid}/webhooks/{webhookUid}/simulate',
    tag: 'webhooks',
    summary: 'Show the runs that a delivery would start',
    description:
      'Starts and stores nothing, and does not use the budget of the webhook. Callers need the role of a member: payloads may be confidential.',
    allow: teamWrites,
    params: webhook,
    body: SimulateDeliveryRequest,
    bodyLimitBytes: maxSimulationBytes,
    answer: {
      status: 200,
      description: 'The run that each automation would start for the delivery',
      schema: SimulateDeliveryResponse,
    },
    errors: { ...simulationErrors, 404: 'No such webhook in the factory, or no such delivery with a stored payload' },
  },
} as const satisfies Record<string, Route>;
