import { z } from 'zod';
import { BlockedOn } from './approvals.ts';
import { ArtifactItem } from './artifacts.ts';
import { AmbientAgentConfig } from './config.ts';
import { ErrorCode } from './errors.ts';
import { Timestamp, Uuid } from './primitives.ts';
import { PageInfo, Scope, UserProfile } from './profiles.ts';
import { RunExecutionLocation, RunSourceType, RunState } from './states.ts';

/** Explains the state of a run. */
export const RunStatusMessage = z
  .object({
    message: z.string(),
    error_code: ErrorCode.optional(),
    retryable: z.boolean().optional(),
    session_debug_until: Timestamp.optional().meta({
      description:
        'Until then the sandbox of a failed setup stays for follow-ups; while one is worked on, the latest end of that',
    }),
  })
  .meta({ id: 'RunStatusMessage' });

/** What the requests to models cost, by kind of token. */
export const InferenceCostBreakdown = z
  .object({
    input_cost_usd: z.number(),
    output_cost_usd: z.number(),
    input_cache_read_cost_usd: z.number(),
    input_cache_write_cost_usd: z.number(),
  })
  .meta({ id: 'InferenceCostBreakdown' });

/** What a run cost. Credits: 1 credit = 1 US cent. */
export const RequestUsage = z
  .object({
    inference_cost: z.number().optional().meta({ description: 'Credits' }),
    compute_cost: z.number().optional().meta({ description: 'Credits' }),
    platform_cost: z.number().optional().meta({ description: 'Credits' }),
    inference_cost_usd: z.number().optional(),
    compute_cost_usd: z.number().optional(),
    platform_cost_usd: z.number().optional(),
    total_tokens: z.int().optional(),
    inference_cost_breakdown_usd: InferenceCostBreakdown.optional(),
  })
  .meta({ id: 'RequestUsage' });
export type RequestUsage = z.infer<typeof RequestUsage>;

/** The schedule that created a run. */
export const RunSchedule = z
  .object({
    schedule_id: z.string(),
    schedule_name: z.string(),
    cron_schedule: z.string(),
  })
  .meta({ id: 'RunSchedule' });

/** The skill that a run follows. */
export const AgentSkill = z
  .object({
    name: z.string().optional(),
    description: z.string().optional(),
    full_path: z.string().optional(),
    bundled_skill_id: z.string().optional(),
  })
  .meta({ id: 'AgentSkill' });

/** How much output of a run was not stored. */
export const DroppedOutput = z
  .object({
    events: z.int(),
    transcript_lines: z.int(),
  })
  .meta({ id: 'DroppedOutput' });

/** One run, in full. */
export const RunItem = z
  .object({
    run_id: Uuid,
    task_id: z.string().meta({ deprecated: true, description: 'The same as run_id' }),
    title: z.string(),
    state: RunState,
    prompt: z.string().meta({ description: 'The whole prompt' }),
    created_at: Timestamp,
    updated_at: Timestamp,
    started_at: Timestamp.nullable().meta({ description: 'When the agent began to work on the prompt' }),
    status_message: RunStatusMessage.optional(),
    blocked_on: BlockedOn.optional().meta({
      description:
        'What a follow-up has to answer: while BLOCKED, and while a FAILED run is asked about in the sandbox of its failed setup',
    }),
    source: RunSourceType.optional(),
    schedule: RunSchedule.optional(),
    session_id: z.string().optional().meta({ description: 'Session of the latest execution' }),
    session_link: z.string().optional().meta({ description: 'Page of the run' }),
    trigger_url: z.string().optional(),
    creator: UserProfile.optional(),
    executor: UserProfile.optional(),
    agent_config: AmbientAgentConfig.optional(),
    agent_skill: AgentSkill.optional(),
    conversation_id: Uuid.optional(),
    parent_run_id: Uuid.optional(),
    is_sandbox_running: z.boolean().optional(),
    is_run_type_cancellable: z.boolean().optional(),
    artifacts: z.array(ArtifactItem).optional(),
    metadata: z.record(z.string(), z.string()).optional(),
    scope: Scope.optional(),
    execution_location: RunExecutionLocation.optional(),
    request_usage: RequestUsage.optional(),
    dropped_output: DroppedOutput.optional().meta({
      description: 'What was not stored because the run reached its limits; absent: everything was stored',
    }),
    run_time: z.string().optional().meta({ description: 'ISO 8601 duration of all executions', example: 'PT1M3.52S' }),
  })
  .meta({ id: 'RunItem' });
export type RunItem = z.infer<typeof RunItem>;

export const ListRunsResponse = z
  .object({
    runs: z.array(RunItem),
    page_info: PageInfo,
  })
  .meta({ id: 'ListRunsResponse' });
export type ListRunsResponse = z.infer<typeof ListRunsResponse>;

/** Body of a cancel's answer: the id, as a JSON string. */
export const CancelRunResponse = z.string().meta({ id: 'CancelRunResponse', description: 'Id of the cancelled run' });
