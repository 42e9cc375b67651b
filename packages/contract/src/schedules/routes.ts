import { z } from 'zod';
import { maxScheduleBytes, maxSchedules } from '../limits.ts';
import { RunAgentResponse } from '../runs/run-request.ts';
import { teamEdits, teamReads, teamWrites } from '../wire/access.ts';
import { DeleteResponse } from '../wire/bodies.ts';
import type { Route } from '../wire/route.ts';
import {
  CreateScheduledAgentRequest,
  ListScheduledAgentsResponse,
  ListScheduleFiresQuery,
  ListScheduleFiresResponse,
  ListSchedulesQuery,
  PreviewScheduleRequest,
  PreviewScheduleResponse,
  ScheduledAgentItem,
  UpdateScheduledAgentRequest,
} from './schedules.ts';

const path = '/agent/schedules';
const onePath = `${path}/{scheduleId}` as const;
const schedule = z.object({ scheduleId: z.string().meta({ description: 'Id of the schedule' }) });
const madeByPerson = 'A person made it, and the key belongs to an agent';
const missing = 'No such schedule, or it belongs to another team or person';
const badSchedule =
  'A missing member, a wrong type, an expression that is not valid or never fires, an unknown time zone, or a run that could not be created: an unknown model, harness or environment';
const tooLarge = `The body is larger than ${maxScheduleBytes / 1024} KB`;

export const scheduleRoutes = {
  listSchedules: {
    method: 'GET',
    path,
    tag: 'schedules',
    summary: 'List schedules',
    allow: teamReads,
    query: ListSchedulesQuery,
    answer: {
      status: 200,
      description: 'The schedules of the team and your own, by name; for administrators all schedules in the team',
      schema: ListScheduledAgentsResponse,
    },
    errors: { 400: 'An unknown value of include' },
  },
  createSchedule: {
    method: 'POST',
    path,
    tag: 'schedules',
    summary: 'Create a schedule',
    description:
      'The schedule creates a run at each of its times, only once with any number of service processes. After an outage it fires once for all times that it missed. Its runs act as its executor, at first the caller.',
    allow: teamWrites,
    body: CreateScheduledAgentRequest,
    bodyLimitBytes: maxScheduleBytes,
    once: 'createSchedule',
    answer: { status: 201, description: 'Created', schema: ScheduledAgentItem },
    errors: {
      400: badSchedule,
      403: 'The environment, MCP server or identity does not exist or belongs to another team, an agent key asks for a personal schedule, or the content policy refuses the prompt',
      409: `The team has ${maxSchedules} schedules, or the Idempotency-Key was used with another body`,
      413: tooLarge,
    },
  },
  previewSchedule: {
    method: 'POST',
    path: `${path}/preview`,
    tag: 'schedules',
    summary: 'Show when a schedule would fire',
    description: 'Stores nothing.',
    allow: teamReads,
    body: PreviewScheduleRequest,
    bodyLimitBytes: 4096,
    answer: { status: 200, description: 'The next times', schema: PreviewScheduleResponse },
    errors: {
      400: 'An expression that is not valid or never fires, or an unknown time zone; `errors` names the member',
      413: 'The body is larger than 4 KB',
    },
  },
  getSchedule: {
    method: 'GET',
    path: onePath,
    tag: 'schedules',
    summary: 'Read a schedule',
    allow: teamReads,
    params: schedule,
    answer: { status: 200, description: 'The schedule', schema: ScheduledAgentItem },
    errors: { 404: missing },
  },
  updateSchedule: {
    method: 'PUT',
    path: onePath,
    tag: 'schedules',
    summary: 'Replace a schedule',
    description:
      'Its runs act as its executor as before; `executor_uid` changes the executor. A changed expression or time zone takes effect now; runs that have started continue.',
    allow: teamEdits,
    params: schedule,
    body: UpdateScheduledAgentRequest,
    bodyLimitBytes: maxScheduleBytes,
    answer: { status: 200, description: 'The schedule as it is now', schema: ScheduledAgentItem },
    errors: {
      400: badSchedule,
      403: 'The environment, MCP server or identity does not exist or belongs to another team, or the content policy refuses the prompt',
      404: missing,
      413: tooLarge,
    },
  },
  deleteSchedule: {
    method: 'DELETE',
    path: onePath,
    tag: 'schedules',
    summary: 'Delete a schedule with its history',
    description: 'It fires no more. Its runs stay, and live ones continue.',
    allow: teamEdits,
    params: schedule,
    answer: { status: 200, description: 'Deleted', schema: DeleteResponse },
    errors: { 403: madeByPerson, 404: missing },
  },
  pauseSchedule: {
    method: 'POST',
    endsSomething: true,
    path: `${onePath}/pause`,
    tag: 'schedules',
    summary: 'Pause a schedule',
    description: 'It fires no more until it is resumed, and a start that waited for the end of a run does not happen.',
    allow: teamEdits,
    params: schedule,
    answer: { status: 200, description: 'The schedule as it is now', schema: ScheduledAgentItem },
    errors: { 403: madeByPerson, 404: missing },
  },
  resumeSchedule: {
    method: 'POST',
    path: `${onePath}/resume`,
    tag: 'schedules',
    summary: 'Resume a paused schedule',
    description: 'It fires at its next time; times that passed in between are not made up for.',
    allow: teamEdits,
    params: schedule,
    answer: { status: 200, description: 'The schedule as it is now', schema: ScheduledAgentItem },
    errors: { 403: madeByPerson, 404: missing },
  },
  runSchedule: {
    method: 'POST',
    path: `${onePath}/run`,
    tag: 'schedules',
    summary: 'Start a run of a schedule now',
    description:
      'Also while it is paused, and whatever its overlap policy says. The run acts as the caller. The times of the schedule do not change.',
    allow: teamWrites,
    params: schedule,
    once: 'runSchedule',
    answer: { status: 200, description: 'Created; the agent starts by itself', schema: RunAgentResponse },
    errors: {
      400: 'The run cannot be created: its model or environment is there no more',
      403: 'The environment, MCP server or identity does not exist or belongs to another team, or the content policy refuses the prompt',
      404: missing,
      409: 'The Idempotency-Key was used with another request',
      413: 'The team has no room for the run (RUNYARD_TEAM_STORAGE_MB)',
    },
  },
  listScheduleFires: {
    method: 'GET',
    path: `${onePath}/history`,
    tag: 'schedules',
    summary: 'List the fires of a schedule, newest first',
    description: 'Kept for 30 days.',
    allow: teamReads,
    params: schedule,
    query: ListScheduleFiresQuery,
    answer: { status: 200, description: 'A page of fires', schema: ListScheduleFiresResponse },
    errors: { 400: 'A wrong value, or a cursor of another list', 404: missing },
  },
} as const satisfies Record<string, Route>;
