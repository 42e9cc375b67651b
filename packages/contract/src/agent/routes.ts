import { z } from 'zod';
import { GithubAnswerRequest, GithubAnswerResponse } from '../environments/github-tools.ts';
import { maxPullRequestsOfRun } from '../limits.ts';
import { AgentEventAck, AgentEventBatch } from '../runs/agent-events.ts';
import { OwnArtifacts } from '../runs/child-runs.ts';
import { SubmitResult, SubmitResultResponse } from '../runs/results.ts';
import { EmptyRequest, EmptyResponse } from '../wire/bodies.ts';
import { Text, TurnNumber } from '../wire/primitives.ts';
import type { Route } from '../wire/route.ts';
import { AgentInbox, AgentTask, ReportArtifact, ReportArtifactResponse, ReportShutdown } from './agent-protocol.ts';
import { ClientEvent, maxClientEvents } from './client-events.ts';
import { FinishTask, FinishTaskResponse } from './finish-task.ts';
import { HoldConnection, HoldConnectionResponse } from './held-connections.ts';
import { OpenPullRequest, OpenPullRequestResponse } from './pull-requests.ts';

const common = { tag: 'harness', allow: { run: 'at_work' } } as const;

/** Routes that the agent calls. After a 401, the agent stops at once, because its execution has ended or was superseded. */
export const harnessRoutes = {
  resolvePrompt: {
    ...common,
    method: 'POST',
    path: '/harness-support/resolve-prompt',
    summary: 'Get the task of the agent',
    body: EmptyRequest,
    answer: { status: 200, description: 'The task', schema: AgentTask },
  },
  reportEvents: {
    ...common,
    allow: { run: 'until_end', checksToken: true },
    method: 'POST',
    path: '/harness-support/events',
    summary: 'Report events',
    description: 'Each event is applied once, even if it is sent several times.',
    body: AgentEventBatch,
    bodyLimitBytes: 16 * 1024 * 1024,
    answer: { status: 200, description: 'All events up to this number are stored', schema: AgentEventAck },
  },
  readInbox: {
    ...common,
    allow: { run: 'until_end', checksToken: true },
    method: 'GET',
    path: '/harness-support/inbox',
    summary: 'Wait for items of the inbox',
    query: z.object({
      wait_ms: z
        .int()
        .min(0)
        .max(60_000)
        .default(0)
        .describe('Longest wait in milliseconds, at most 60,000; 0: answers at once'),
      after: z.int().min(0).default(0).meta({ description: 'Position of the last follow-up that the agent has' }),
      interrupted: z.int().min(0).default(0).meta({ description: 'Turn whose interrupt the agent has' }),
      held: z.int().min(0).optional().meta({
        description: 'Number of the last held action that the agent received; absent: it does not ask about them',
      }),
      changes: z.int().min(0).optional().meta({
        description:
          'Number of the last request for changed files that the agent received; absent: it does not report changed files',
      }),
    }),
    answer: { status: 200, description: 'The waiting items; empty after wait_ms', schema: AgentInbox },
  },
  holdConnection: {
    ...common,
    method: 'POST',
    path: '/harness-support/connections',
    summary: 'Ask about a connection',
    description:
      'The proxy of the sandbox asks before it connects to a host that an approval rule names. The answer comes after at most 50 seconds.',
    body: HoldConnection,
    answer: { status: 200, description: 'Decision about one connection', schema: HoldConnectionResponse },
  },
  finishTask: {
    ...common,
    allow: { run: 'until_end', checksToken: true },
    method: 'POST',
    endsSomething: true,
    path: '/harness-support/finish-task',
    summary: 'Report the end of a turn',
    body: FinishTask,
    answer: { status: 200, description: 'Stored; sending it twice is not an error', schema: FinishTaskResponse },
  },
  reportShutdown: {
    ...common,
    allow: { run: 'until_end' },
    method: 'POST',
    endsSomething: true,
    path: '/harness-support/report-shutdown',
    summary: 'Report the exit of the agent',
    body: ReportShutdown,
    answer: { status: 200, description: 'Stored', schema: EmptyResponse },
  },
  reportClientEvent: {
    ...common,
    method: 'POST',
    path: '/agent/runs/{runId}/client-events',
    summary: 'Report a step of the preparation',
    description: `Public workers report the steps of a sandbox's preparation here. The timeline shows each as a setup step of the kind \`client\`. A run keeps at most ${maxClientEvents}; further events are accepted and dropped. Secrets in names are redacted.`,
    params: z.object({ runId: z.string().describe('Id of the run that the token belongs to') }),
    body: ClientEvent,
    bodyLimitBytes: 16 * 1024,
    answer: { status: 202, description: 'Accepted', schema: EmptyResponse },
    errors: { 404: 'The token belongs to another run', 409: 'The execution is stopping' },
  },
  reportArtifact: {
    ...common,
    method: 'POST',
    path: '/harness-support/report-artifact',
    summary: 'Report an artifact',
    description:
      'FILE and SCREENSHOT get an `upload_url`, and exist once their bytes were PUT there. At most 100 in a run, each of at most RUNYARD_ARTIFACT_MB. If `data.size_bytes` is too large, the report is refused.',
    body: ReportArtifact,
    bodyLimitBytes: 4 * 1024 * 1024,
    once: 'reportArtifact',
    answer: { status: 200, description: 'Stored', schema: ReportArtifactResponse },
    errors: {
      400: 'Data does not fit the type, or the run has 100 artifacts',
      413: 'size_bytes is larger than RUNYARD_ARTIFACT_MB, or than the room of the run or team',
      409: 'The Idempotency-Key was used with another body, or the execution is stopping',
    },
  },
  listOwnArtifacts: {
    ...common,
    method: 'GET',
    path: '/harness-support/artifacts',
    summary: 'List the artifacts of the run',
    answer: { status: 200, description: 'The artifacts, oldest first', schema: OwnArtifacts },
  },
  submitResult: {
    ...common,
    method: 'POST',
    path: '/harness-support/result',
    summary: 'Submit the result of the turn',
    description:
      'The value is checked against the `output_schema` of the run. A value that does not fit is answered with the faults, and is not stored. The last accepted value of a turn becomes the `result` of the run when the turn ends.',
    body: SubmitResult,
    bodyLimitBytes: 512 * 1024,
    answer: { status: 200, description: 'Accepted, or the faults', schema: SubmitResultResponse },
    errors: {
      400: 'The run has no `output_schema`',
      404: 'The run has no such artifact, or its bytes are missing',
      409: 'The execution is stopping',
      413: 'The result has more than 256 KB, or the artifact more than 8 MB',
      503: 'Too many results wait for their check',
    },
  },
  openPullRequest: {
    ...common,
    method: 'POST',
    path: '/harness-support/pull-requests',
    summary: 'Open a pull request',
    description: `Opens it at GitHub or GitLab with the stored credential of the repository, and keeps it as an artifact. A branch with an open pull request gets no second one. At most ${maxPullRequestsOfRun} in a run.`,
    body: OpenPullRequest,
    answer: { status: 200, description: 'Open', schema: OpenPullRequestResponse },
    errors: {
      403: 'No credential is stored, or the credential may not open pull requests there',
      404: "The repository is not of the run's environment, or the code host has no such repository or branch",
      409: 'The code host refuses it, for example because there is nothing to merge; or the run has opened its maximum number of pull requests; or the execution is stopping',
      503: 'The code host cannot be reached, or has a fault',
    },
  },
  answerOnGithub: {
    ...common,
    method: 'POST',
    path: '/harness-support/github-answers',
    summary: 'Write on GitHub',
    description:
      'Writes with the App of the team, if `github_tools` of the automation that started the run, or else of its environment, allows the tool. The same request of a run writes nothing twice.',
    body: GithubAnswerRequest,
    answer: { status: 200, description: 'Written', schema: GithubAnswerResponse },
    errors: {
      403: 'The run may not do it',
      404: 'The run has no such issue, pull request or review thread',
      409: 'GitHub refuses it, or a limit is reached, or the execution is stopping',
      503: 'GitHub cannot be reached, has a fault, or accepts no requests now',
    },
  },
  keepMemory: {
    ...common,
    allow: { run: 'until_end' },
    method: 'PUT',
    path: '/harness-support/memory',
    summary: "Keep the harness's memory of the conversation",
    description: 'Replaces what was kept before. At most 32 MB.',
    query: z.object({
      turn: TurnNumber.describe('Number of the turn in the execution: 1, 2, …'),
      request_id: Text.max(200).optional().meta({
        description:
          'The request within the turn before which the memory was saved; the memory is valid until that request is decided. Absent: the memory was saved at the end of the turn',
      }),
    }),
    bodyType: 'application/octet-stream',
    answer: { status: 200, description: 'Stored', schema: EmptyResponse },
    errors: { 413: 'More than 32 MB, or than RUNYARD_TEAM_STORAGE_MB allows together with all that the team stores' },
  },
  readMemory: {
    ...common,
    method: 'GET',
    path: '/harness-support/memory/{executionId}',
    summary: "The harness's memory of the conversation, of an earlier execution",
    params: z.object({ executionId: z.string().describe('Id of the earlier execution, as the task names it') }),
    answer: { status: 200, description: 'The bytes', contentType: 'application/octet-stream' },
    ranges: true,
    errors: { 404: 'No such memory in this conversation' },
  },
  keepWorkspace: {
    ...common,
    allow: { run: 'until_end' },
    method: 'PUT',
    path: '/harness-support/workspace',
    summary: 'Upload workspace and home at the end of a turn, or at a checkpoint',
    description:
      'Replaces the earlier archive when the whole body has arrived. An empty body means that workspace and home are empty. Checkpoints are at least half of `RUNYARD_CHECKPOINT_SECONDS` apart: an earlier one gets 429. During the upload, an agent that must leave may stay for up to two minutes.',
    query: z.object({
      turn: TurnNumber.describe('Number of the turn in the execution: 1, 2, …'),
      checkpoint: z.int().min(1).max(2_147_483_647).optional().meta({
        description:
          'The state in the middle of the turn, at the event `checkpoint` with this number. Absent: as at the end of the turn',
      }),
      session_id: Text.max(500)
        .optional()
        .meta({ description: "The harness's session, if it can load the session again" }),
    }),
    bodyType: 'application/octet-stream',
    answer: { status: 200, description: 'Stored', schema: EmptyResponse },
    errors: {
      409: 'The run does not resume lost turns, or the event of this checkpoint is not stored',
      413: 'Larger than RUNYARD_WORKSPACE_MB, or than RUNYARD_TEAM_STORAGE_MB allows together with all that the team stores',
    },
  },
  readWorkspace: {
    ...common,
    method: 'GET',
    path: '/harness-support/workspace/{executionId}',
    summary: 'Download workspace and home of an earlier execution',
    params: z.object({ executionId: z.string().describe('Id of the earlier execution, as the task names it') }),
    answer: { status: 200, description: 'The bytes', contentType: 'application/octet-stream' },
    ranges: true,
    errors: { 404: 'The run has no such workspace' },
  },
  readStoredChanges: {
    ...common,
    method: 'GET',
    path: '/harness-support/changes/{fileId}',
    summary: 'Download the stored changes of a repository',
    params: z.object({ fileId: z.string().describe('Id of the patch, as in its path') }),
    answer: { status: 200, description: 'The patch', contentType: 'text/x-diff' },
    ranges: true,
    errors: { 404: 'The run has no such patch' },
  },
  readAttachment: {
    ...common,
    method: 'GET',
    path: '/harness-support/attachments/{attachmentId}',
    summary: 'Download a file of the prompt',
    params: z.object({ attachmentId: z.string().describe('Id of the attachment, as in its path') }),
    answer: { status: 200, description: 'The bytes, with the media type of the attachment', contentType: '*/*' },
    ranges: true,
    errors: { 404: 'No such attachment in this run' },
  },
} as const satisfies Record<string, Route>;
