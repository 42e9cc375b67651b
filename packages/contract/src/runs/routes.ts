import { z } from 'zod';
import { maxPreparedOfCaller, maxPreparedOfTeam, maxRequestBodyBytes } from '../limits.ts';
import { teamReads, teamWrites } from '../wire/access.ts';
import { DeleteResponse, EmptyResponse } from '../wire/bodies.ts';
import { goneEvents, lastEventId, notOfStream, streamRules, tooManyStreams } from '../wire/event-streams.ts';
import type { Route } from '../wire/route.ts';
import { ConversationResponse } from './conversations.ts';
import { HarnessUsage } from './harness-usage.ts';
import { LiveEvent, TeamLiveEvent } from './live-events.ts';
import { PrepareAttachmentsRequest, PrepareAttachmentsResponse } from './prepared-attachments.ts';
import { maxCounted, RunCounts, RunCountsQuery } from './run-counts.ts';
import { ListRunsQuery } from './run-list.ts';
import {
  EditFollowupRequest,
  RerunFailedResponse,
  RerunRequest,
  RunAgentRequest,
  RunAgentResponse,
  RunFollowupRequest,
  RunFollowupResponse,
} from './run-request.ts';
import { CancelRunResponse, ListRunsResponse, RunItem } from './runs.ts';
import { sourceHeader } from './states.ts';
import { GetRunTimelineResponse } from './timeline.ts';

const run = z.object({ runId: z.string().meta({ description: 'Id of the run' }) });
const followup = run.extend({ followupId: z.string().meta({ description: 'Id of the follow-up' }) });
const noFollowup = 'No such run or follow-up, or they belong to another team';
const takenFollowup = 'The agent has the follow-up, or it answers a question of the run';
const noRun = 'No such run, or it belongs to another team';
const tooManyReads = 'Too many long conversations are being read at the moment; `Retry-After` tells when to ask again';
const rawTranscript = { Location: 'Signed URL of the transcript, for 15 minutes' };

const create = {
  method: 'POST',
  tag: 'runs',
  allow: teamWrites,
  body: RunAgentRequest,
  bodyLimitBytes: maxRequestBodyBytes,
  headers: sourceHeader,
  once: 'createRun',
  answer: { status: 200, description: 'Created; the agent starts by itself', schema: RunAgentResponse },
  errors: {
    400: 'No prompt, a wrong type, an unknown model, harness, environment or parent',
    403: 'The environment, MCP server or identity does not exist or belongs to another team, or the content policy refuses the prompt',
    409: 'The Idempotency-Key was used with another body, or the parent was cancelled',
    413: 'The body is larger than 64 MB, or the team has no room for the request (RUNYARD_TEAM_STORAGE_MB)',
  },
} as const satisfies Partial<Route>;

export const runRoutes = {
  createRun: { ...create, path: '/agent/runs', summary: 'Create a run' },
  createRunDeprecated: {
    ...create,
    path: '/agent/run',
    summary: 'Create a run (old path)',
    description: 'The same as `POST /agent/runs`.',
    deprecated: true,
  },
  listRuns: {
    method: 'GET',
    path: '/agent/runs',
    tag: 'runs',
    summary: 'List runs',
    description:
      'Pages by cursor: a run that does not change while the list is read comes once. `view=summary` is for lists with many rows.',
    allow: teamReads,
    query: ListRunsQuery,
    answer: { status: 200, description: 'One page', schema: ListRunsResponse },
    errors: {
      400: 'A wrong value, an ancestor_run_id that is not a run of the team, or a cursor of another sort or filter',
      403: 'Filtering by metadata is turned off for the team',
    },
  },
  countRuns: {
    method: 'GET',
    path: '/agent/runs/counts',
    tag: 'runs',
    summary: 'Count runs',
    description: `Counts the runs that \`GET /agent/runs\` lists with the same filters. The numbers are exact up to ${maxCounted.inTime.toLocaleString('en')} runs with \`created_after\` or \`updated_after\`, and up to ${maxCounted.ever.toLocaleString('en')} without.`,
    allow: teamReads,
    query: RunCountsQuery,
    answer: { status: 200, description: 'The numbers', schema: RunCounts },
    errors: {
      400: 'A wrong value, an ancestor_run_id that is not a run of the team, a step without created_after, or too many steps',
      403: 'Filtering by metadata is turned off for the team',
    },
  },
  getRun: {
    method: 'GET',
    path: '/agent/runs/{runId}',
    tag: 'runs',
    summary: 'Read a run',
    allow: teamReads,
    params: run,
    answer: { status: 200, description: 'The run', schema: RunItem },
    errors: { 404: noRun },
  },
  rerunRun: {
    method: 'POST',
    path: '/agent/runs/{runId}/rerun',
    tag: 'runs',
    summary: 'Rerun a run',
    description:
      'Creates a run with its own conversation and the same prompt, configuration, attachments, title, mode and metadata, below the same parent unless it was cancelled; the first run may be in any state. With `comparison`, it begins at the commits that the first run has cloned, and changes no repository at its code host.',
    allow: teamWrites,
    params: run,
    body: RerunRequest.optional(),
    bodyLimitBytes: 4 * 1024 * 1024,
    headers: sourceHeader,
    once: 'rerunRun',
    answer: { status: 200, description: 'Created; the agent starts by itself', schema: RunAgentResponse },
    errors: {
      400: 'A wrong type; the run had no prompt; its model or environment no longer exists',
      403: 'The environment, MCP server or identity does not exist or belongs to another team, or the content policy refuses the prompt',
      404: noRun,
      409: 'The Idempotency-Key was used with another body, or an attachment of the run is lost',
    },
  },
  rerunFailedRuns: {
    method: 'POST',
    path: '/agent/runs/{runId}/rerun-failed',
    tag: 'runs',
    summary: 'Rerun the failed runs of a tree',
    description:
      'Repeats each run of the tree of this run that is FAILED or ERROR, has started no runs, and was not repeated yet, below its parent. Each failed run is repeated once, however often the request is sent. Runs that work, and failed runs whose retry is planned, are left.',
    allow: teamWrites,
    params: run,
    headers: sourceHeader,
    answer: { status: 200, description: 'The new runs; agents start by themselves', schema: RerunFailedResponse },
    errors: { 404: noRun },
  },
  deleteRun: {
    method: 'DELETE',
    path: '/agent/runs/{runId}',
    tag: 'runs',
    summary: 'Delete a run that has ended',
    description:
      'Deletes the run with its conversation, transcript, attachments and artifacts; their URLs stop working at once. Runs that it started stay. A sandbox that waits for a follow-up is closed first.',
    allow: teamWrites,
    params: run,
    answer: { status: 200, description: 'Deleted', schema: DeleteResponse },
    errors: { 404: noRun, 409: 'The run has not ended, or its sandbox is still being closed' },
  },
  cancelRun: {
    method: 'POST',
    endsSomething: true,
    path: '/agent/runs/{runId}/cancel',
    tag: 'runs',
    summary: 'Cancel a run',
    description:
      'Also cancels every run below it that has not ended, self-hosted runs included. A run that is PENDING is cancelled as soon as a worker claims it. If the turn of the run was interrupted and its agent waits for a message, the sandbox ends, and the run keeps its state.',
    allow: teamWrites,
    params: run,
    answer: {
      status: 200,
      description: 'Cancelled, or its waiting sandbox ends: the id as a JSON string',
      schema: CancelRunResponse,
    },
    errors: {
      400: 'The run has ended already',
      404: noRun,
      409: 'The run is PENDING; try again',
      422: 'Self-hosted, local and GitHub Action runs cannot be cancelled here',
    },
  },
  sendFollowup: {
    method: 'POST',
    path: '/agent/runs/{runId}/followups',
    tag: 'runs',
    summary: 'Send a follow-up to a run',
    description:
      'The message joins the first prompt of a run that has not begun, and is the next turn of a run at work. It answers the question of a BLOCKED run. It continues a run that has ended: in its sandbox while the sandbox waits, else in a new execution. If the setup of the run failed, the message goes to the sandbox that exists until `status_message.session_debug_until`. The run stays FAILED, even while a question of this sandbox (`blocked_on`) waits for an answer.',
    allow: teamWrites,
    params: run,
    body: RunFollowupRequest,
    bodyLimitBytes: maxRequestBodyBytes,
    once: 'sendFollowup',
    answer: {
      status: 200,
      description: 'Accepted; read the run to see the outcome',
      schema: RunFollowupResponse,
    },
    errors: {
      400: 'A wrong type; an attachment that is not base64 or is too large; an empty message if there is no conversation to continue; or a decision if the run is not BLOCKED',
      403: 'The content policy refuses the message; the run asks a question that an agent key may not answer (`config.approvals_from`); or its sandbox holds a secret that the caller may not use: in this case, rerun the run',
      404: noRun,
      409: 'The Idempotency-Key was used with another body',
      413: 'The body is larger than 64 MB, or the team has no room for the request (RUNYARD_TEAM_STORAGE_MB)',
      422: 'An attachment_id names no file that the caller has prepared for this run and uploaded',
    },
  },
  editFollowup: {
    method: 'PATCH',
    path: '/agent/runs/{runId}/followups/{followupId}',
    tag: 'runs',
    summary: 'Change a follow-up that waits',
    description:
      'Replaces the message of one of `waiting_followups`. Only its author may do this, and only until the turn before it has ended: then the agent gets the message.',
    allow: teamWrites,
    params: followup,
    body: EditFollowupRequest,
    answer: { status: 200, description: 'The agent gets the new text', schema: EmptyResponse },
    errors: {
      400: 'A wrong type, or an empty message',
      403: 'Another caller sent the follow-up, the content policy refuses the message, or the sandbox holds a secret that the caller may not use',
      404: noFollowup,
      409: takenFollowup,
      413: 'The team has no room for the message (RUNYARD_TEAM_STORAGE_MB)',
    },
  },
  withdrawFollowup: {
    method: 'DELETE',
    path: '/agent/runs/{runId}/followups/{followupId}',
    tag: 'runs',
    summary: 'Withdraw a follow-up that waits',
    description:
      'Deletes one of `waiting_followups` with its files, so that no agent gets it. Its author may do this, and every owner and administrator of the team.',
    allow: teamWrites,
    params: followup,
    answer: { status: 200, description: 'Withdrawn', schema: DeleteResponse },
    errors: {
      403: 'Another caller sent the follow-up, and the caller is no owner or administrator of the team',
      404: noFollowup,
      409: `${takenFollowup}; or the run was queued again only for it: cancel the run instead`,
    },
  },
  prepareRunAttachments: {
    method: 'POST',
    path: '/agent/runs/{runId}/attachments/prepare',
    tag: 'runs',
    summary: 'Prepare the upload of files for a follow-up',
    description:
      'The follow-up of the same caller names them by their ids. Files that no follow-up names are deleted after a day.',
    allow: teamWrites,
    params: run,
    body: PrepareAttachmentsRequest,
    once: 'prepareRunAttachments',
    answer: { status: 200, description: 'Where to upload each file', schema: PrepareAttachmentsResponse },
    errors: {
      400: 'A wrong type, or more than 25 files',
      404: noRun,
      409: 'The Idempotency-Key was used with another body',
      429: `The caller has ${maxPreparedOfCaller} prepared files that no follow-up has used, or the team ${maxPreparedOfTeam}`,
    },
  },
  interruptRun: {
    method: 'POST',
    endsSomething: true,
    path: '/agent/runs/{runId}/interrupt',
    tag: 'runs',
    summary: 'End the turn in progress',
    description:
      'The agent stops its work and begins the next follow-up. If there is none, the run becomes SUCCEEDED, and its agent waits for a follow-up in the sandbox. `status_message` has the end of the wait; cancelling the run ends the sandbox.',
    allow: teamWrites,
    params: run,
    answer: { status: 200, description: 'The agent was notified', schema: EmptyResponse },
    errors: { 400: 'No turn is in progress, or the run is BLOCKED: answer it or cancel it', 404: noRun },
  },
  getHarnessUsage: {
    method: 'GET',
    path: '/agent/runs/{runId}/harness-usage',
    tag: 'usage',
    summary: "Read the token usage of a run as its harness's provider counts it",
    description:
      'For runs with the harness claude or codex: the total usage of their requests to models so far, as the service counted it. Other runs have `request_usage`.',
    allow: teamReads,
    params: run,
    answer: { status: 200, description: 'The counters, or the answer that there are none', schema: HarnessUsage },
    errors: { 404: noRun },
  },
  getRunTimeline: {
    method: 'GET',
    path: '/agent/runs/{runId}/timeline',
    tag: 'runs',
    summary: 'Read the timeline of a run',
    allow: teamReads,
    params: run,
    answer: { status: 200, description: 'Setup and lifecycle events, oldest first', schema: GetRunTimelineResponse },
    errors: { 404: noRun },
  },
  getRunConversation: {
    method: 'GET',
    path: '/agent/runs/{runId}/conversation',
    tag: 'conversations',
    summary: 'Read the conversation of a run',
    allow: teamReads,
    params: run,
    answer: { status: 200, description: 'Messages and steps', schema: ConversationResponse },
    errors: {
      404: `${noRun}, or it has no conversation yet: the detail has the reason for the run's wait`,
      422: 'The harness gives only raw output',
      429: tooManyReads,
    },
  },
  getRunTranscript: {
    method: 'GET',
    path: '/agent/runs/{runId}/transcript',
    tag: 'conversations',
    summary: 'Download the raw transcript of a run',
    description: 'Newline-delimited JSON as the harness produced it.',
    allow: teamReads,
    params: run,
    answer: { status: 302, description: 'Go to Location', headers: rawTranscript },
    errors: { 404: `${noRun}, or it has no transcript yet` },
  },
  streamRunEvents: {
    method: 'GET',
    path: '/agent/runs/{runId}/events',
    tag: 'runs',
    summary: 'Follow a run live',
    description: `Server-sent events: \`id\`, \`event\` (the event's \`type\`) and \`data\`, a LiveEvent as JSON: states, timeline and conversation, from the run's beginning, then as they come. ${streamRules} The stream ends when the run has ended and all is sent, with the comment \`: end\`; after a follow-up, a new stream continues. The same holds for a follow-up to the sandbox of a failed setup: a reader that reconnects with the last id gets its turn, and the stream ends again when the turn has ended or asks a question.`,
    allow: teamReads,
    params: run,
    query: z.object({
      follow: z
        .boolean()
        .optional()
        .meta({ description: 'false: the stream ends after the events that are stored now. Default: true' }),
    }),
    headers: { 'Last-Event-ID': lastEventId },
    answer: { status: 200, description: 'Stream of events', contentType: 'text/event-stream', eventSchema: LiveEvent },
    errors: { 400: notOfStream, 404: noRun, 410: goneEvents, 429: tooManyStreams },
  },
  streamTeamEvents: {
    method: 'GET',
    path: '/agent/runs/events',
    tag: 'runs',
    summary: "Follow all of the team's runs live",
    description: `Server-sent events: \`id\`, \`event\` and \`data\`, a TeamLiveEvent as JSON: states and timeline of all runs with their \`run_id\`, from now on (a moment before may be among it), those of one run in their order. Conversations are not among them: follow the run itself. ${streamRules} An \`id\` without \`data\` comes first and with each heartbeat: it continues from there. Ids are good for seven days. Events of runs that were deleted meanwhile are not sent. The stream does not end by itself.`,
    allow: teamReads,
    headers: { 'Last-Event-ID': lastEventId },
    answer: {
      status: 200,
      description: 'Stream of events',
      contentType: 'text/event-stream',
      eventSchema: TeamLiveEvent,
    },
    errors: { 400: notOfStream, 410: goneEvents, 429: tooManyStreams },
  },
} as const satisfies Record<string, Route>;
