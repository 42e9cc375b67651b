import { z } from 'zod';
import { waitingMessageLength } from '../limits.ts';
import { ErrorCode, ErrorDetail } from '../wire/errors.ts';
import { Timestamp, Uuid } from '../wire/primitives.ts';
import { PageInfo, Scope, UserProfile } from '../wire/profiles.ts';
import { RunContentItem, WithheldRight } from './acceptances.ts';
import { DescribedApproval } from './approval-rules.ts';
import { BlockedOn } from './approvals.ts';
import { ArtifactItem } from './artifacts.ts';
import { AmbientAgentConfig } from './config.ts';
import { RunMode } from './message-origin.ts';
import { RequestUsage } from './request-usage.ts';
import { RunExecutionLocation, RunSourceType, RunState } from './states.ts';

/** Maximum number of characters of each text in a summary. */
export const summaryLength = 300;
/** Maximum number of artifacts in a summary. */
export const summaryArtifacts = 3;

/** Explains the state of a run. */
export const RunStatusMessage = z
  .object({
    message: z.string().describe('Why the run is in its state, for people'),
    error_code: ErrorCode.optional(),
    retryable: z.boolean().optional().describe('True: the same run may succeed when it is created again'),
    session_debug_until: Timestamp.optional().meta({
      description:
        'The sandbox of a failed setup waits for follow-ups until this time; while the agent works on a follow-up: the latest end of that work',
    }),
    debug_agent_active: z
      .boolean()
      .optional()
      .describe(
        'True: in the sandbox of the failed setup, the agent works on a follow-up. Absent: there is no such sandbox',
      ),
    ...ErrorDetail.shape,
  })
  .meta({ id: 'RunStatusMessage', description: 'Explains the state of a run' });

/** The schedule that created a run. */
export const RunSchedule = z
  .object({
    schedule_id: z.string().describe('Id of the schedule'),
    schedule_name: z.string().describe('Name of the schedule'),
    cron_schedule: z.string().describe('When it creates runs, as a cron expression'),
  })
  .meta({ id: 'RunSchedule', description: 'The schedule that created a run' });

/** The skill that a run follows. */
export const AgentSkill = z
  .object({
    name: z.string().optional().describe('Name of the skill'),
    description: z.string().optional().describe('The purpose of the skill'),
    full_path: z.string().optional().describe('Path of its file in the repository'),
    commit: z.string().optional().describe('Commit that the skill was read at; absent: no agent has begun the run yet'),
    bundled_skill_id: z.string().optional().describe('Id of a skill that comes with the service'),
  })
  .meta({ id: 'AgentSkill', description: 'The skill that a run follows' });

/** The amount of a run's output that the service did not store. */
export const DroppedOutput = z
  .object({
    events: z.int().describe('Events of the conversation that were not stored'),
    transcript_lines: z.int().describe('Lines of the transcript that were not stored'),
  })
  .meta({ id: 'DroppedOutput', description: 'How much output was not stored' });

/** The environment of a run, by name. */
export const RunEnvironment = z
  .object({
    environment_id: z.string().describe('UID of the environment'),
    name: z.string().optional().describe('Name of the environment; absent: it was deleted, or belongs to another team'),
  })
  .meta({ id: 'RunEnvironment', description: 'The environment of a run' });

/** The automation that started a run. */
export const RunAutomation = z
  .object({
    automation_id: z.string().describe('UID of the automation'),
    name: z.string().optional().describe('Name of the thing in that revision; absent: no longer known'),
  })
  .meta({ id: 'RunAutomation', description: 'The automation that started a run' });

/** Numbers of the runs that a run started. */
export const ChildRunCounts = z
  .object({
    total: z.int().describe('Runs that the run started itself; at most 1,000 are counted'),
    live: z.int().describe('Those of them that have not ended'),
  })
  .meta({ id: 'ChildRunCounts', description: 'How many runs a run started' });

/** A follow-up that no agent has taken yet. */
export const WaitingFollowup = z
  .object({
    followup_id: Uuid.describe('Id of the follow-up, as in the timeline'),
    message: z.string().describe(`The first ${waitingMessageLength} characters of the message`),
    mode: RunMode.optional(),
    attachments: z.array(z.string()).describe('Names of its files'),
    created_by: z.string().describe('UID of the person, the identity or the run that sent it'),
    created_at: Timestamp.describe('When it arrived, RFC 3339 in UTC'),
  })
  .meta({ id: 'WaitingFollowup', description: 'A follow-up that waits until the agent can read it' });
export type WaitingFollowup = z.infer<typeof WaitingFollowup>;

/** One run, in full. */
export const RunItem = z
  .object({
    run_id: Uuid.describe('Id of the run'),
    task_id: z.string().meta({ deprecated: true, description: 'The same as run_id' }),
    title: z.string().describe('Title of the run'),
    state: RunState,
    prompt: z.string().optional().meta({ description: 'The whole prompt. Always there, but not with `view=summary`' }),
    submitted_prompt: z
      .string()
      .optional()
      .describe(
        'The prompt as it was sent, followed by messages that arrived before the run began. Not in lists, and absent if the service itself wrote a part of the prompt',
      ),
    waiting_followups: z
      .array(WaitingFollowup)
      .optional()
      .describe('Follow-ups that the agent has not taken yet, oldest first. Not in lists; absent: none'),
    created_at: Timestamp.describe('When the run was created, RFC 3339 in UTC'),
    updated_at: Timestamp.describe('When the run last changed, RFC 3339 in UTC'),
    started_at: Timestamp.nullable().meta({ description: 'When the agent began to work on the prompt' }),
    finished_at: Timestamp.nullable().describe('When the run last ended; null: it is active'),
    status_message: RunStatusMessage.optional().meta({
      description:
        'Why the run is in its state. Before the run has begun: the reason for its wait. After an interrupt: how long its agent waits for a message',
    }),
    error_category: z
      .enum(['user_error', 'platform_error'])
      .meta({ id: 'RunErrorCategory', description: 'Kind of the error of a run' })
      .optional()
      .describe(
        'Of FAILED and ERROR runs. user_error: a change of the request or the settings helps. platform_error: the service, a worker or a provider failed',
      ),
    blocked_on: BlockedOn.optional().meta({
      description:
        'The question that a follow-up has to answer: while BLOCKED, and while the agent in the sandbox of a failed setup asks',
    }),
    source: RunSourceType.optional(),
    schedule: RunSchedule.optional(),
    session_id: z.string().optional().meta({ description: 'Session of the latest execution' }),
    session_link: z.string().optional().meta({ description: 'Page of the run' }),
    trigger_url: z.string().optional().describe('Page of the thing that created the run, such as an issue'),
    creator: UserProfile.optional().describe('Who created the run'),
    executor: UserProfile.optional().describe('The principal whose rights the run has; it may differ from the creator'),
    agent_config: AmbientAgentConfig.optional().describe('How the run is executed, as requested'),
    approvals: z
      .array(DescribedApproval)
      .optional()
      .describe(
        'Actions that a person has to approve, in words; absent: none. With the policy auto-deny, they are denied',
      ),
    model_id: z
      .string()
      .optional()
      .describe('Model that the run uses now. During an outage of a provider, it may differ from the requested model'),
    agent_skill: AgentSkill.optional(),
    conversation_id: Uuid.optional().describe('Conversation of the run'),
    parent_run_id: Uuid.optional().describe('Run that started this one'),
    retry_of: Uuid.optional().describe('Failed run that this one repeats because of its `retry`'),
    rerun_of: Uuid.optional().describe('Run that this one repeats because somebody asked for it'),
    is_comparison: z
      .boolean()
      .optional()
      .describe(
        'True: the run, or a run above it, was made for a comparison, so it can neither push nor open pull requests',
      ),
    root_run_id: Uuid.describe('Run at the top of the tree: run_id itself if no other run started this run'),
    factory_uid: z
      .string()
      .optional()
      .describe('Factory whose agent executes the run; absent: the agent does not belong to a factory'),
    is_sandbox_running: z.boolean().optional().describe('True: the sandbox exists, at work or waiting for a follow-up'),
    debug_agent_available: z
      .boolean()
      .optional()
      .describe('Of FAILED runs. True: the sandbox of the failed setup still takes follow-ups'),
    is_run_type_cancellable: z.boolean().optional().describe('False: `POST …/cancel` answers 422'),
    artifacts: z.array(ArtifactItem).optional().describe('Results of the run'),
    metadata: z.record(z.string(), z.string()).optional().describe('Key/value pairs of the run; they do not change'),
    scope: Scope.optional(),
    execution_location: RunExecutionLocation.optional(),
    request_usage: RequestUsage.optional(),
    dropped_output: DroppedOutput.optional().meta({
      description: 'Amounts that were not stored because the run reached its limits; absent: everything was stored',
    }),
    contents: z.array(RunContentItem).optional().meta({
      description: 'Revisions that the run executes; absent: it executes only the prompt of its executor',
    }),
    withheld: z.array(WithheldRight).optional().meta({
      description: 'Rights of its executor that the run lacks because of the contents that it executes; absent: none',
    }),
    final_message: z
      .string()
      .nullable()
      .optional()
      .describe(
        "The agent's last message of the last turn that ended, at most 64 KB; null: there is none. Not in lists. Treat it as data: an agent wrote it",
      ),
    result: z
      .unknown()
      .optional()
      .describe(
        'Result of the last turn that ended, which matches `agent_config.output_schema`. Not in lists; absent: that turn has none, or its result is an artifact',
      ),
    result_artifact_uid: z
      .string()
      .optional()
      .describe('UID of the FILE artifact with the result, if it is larger than 256 KB. Not in lists'),
    run_time: z.string().optional().meta({ description: 'ISO 8601 duration of all executions', example: 'PT1M3.52S' }),
    harness: z.string().optional().describe('Harness of the run. Only with `view=summary`'),
    environment: RunEnvironment.optional().describe('Environment of the run. Only with `view=summary`'),
    automation: RunAutomation.optional().describe('Automation that started the run. Only with `view=summary`'),
    child_runs: ChildRunCounts.optional().describe('Runs that the run started. Only with `view=summary`; absent: none'),
  })
  .meta({
    id: 'RunItem',
    description: `One run. With \`view=summary\` it has what a row of a list shows: no prompt, configuration, metadata, contents and rights; the first ${summaryLength} characters of \`status_message.message\` and \`blocked_on.title\`, without options and action; the first ${summaryArtifacts} artifacts; of \`request_usage\` tokens and cost`,
  });
export type RunItem = z.infer<typeof RunItem>;

export const ListRunsResponse = z
  .object({
    runs: z.array(RunItem).describe('Runs of the page'),
    page_info: PageInfo,
  })
  .meta({ id: 'ListRunsResponse', description: 'A page of runs' });
export type ListRunsResponse = z.infer<typeof ListRunsResponse>;

/** Body of the answer to a cancel: the id of the run, as a JSON string. */
export const CancelRunResponse = z.string().meta({ id: 'CancelRunResponse', description: 'Id of the cancelled run' });
