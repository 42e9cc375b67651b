import { z } from 'zod';
import { EnvironmentConfig } from '../environments/environments.ts';
import { maxLastFires, maxWaitingFires } from '../limits.ts';
import { WaitingAfterChange } from '../runs/acceptances.ts';
import { AmbientAgentConfig, RequestedAgentConfig } from '../runs/config.ts';
import { RunMode } from '../runs/message-origin.ts';
import { NotifyRules } from '../runs/notify.ts';
import { RunMetadata } from '../runs/run-request.ts';
import { overlapPolicies } from '../wire/choices.ts';
import { pageMembers } from '../wire/pages.ts';
import { NonBlank, Text, Timestamp, Uuid } from '../wire/primitives.ts';
import { PageInfo, Scope, UserProfile } from '../wire/profiles.ts';

/** The policy for a schedule that is due while earlier runs of the schedule are still live. */
export const OverlapPolicy = z.enum(overlapPolicies).meta({
  id: 'OverlapPolicy',
  description: `The rule for a time while \`max_live_runs\` runs of the schedule are live. \`allow\`: a run starts anyway, unless max_live_runs is set. \`skip\`: none starts. \`queue\`: it starts when one has ended; at most ${maxWaitingFires} wait. \`cancel_previous\`: the oldest live run is cancelled, and a run starts`,
});
export type OverlapPolicy = z.infer<typeof OverlapPolicy>;

const cronSchedule = NonBlank.max(200).meta({
  description:
    'Five fields (minute, hour, day of the month, month, day of the week), a word such as @daily, or @every with a duration of at least 1m, such as @every 90m',
  example: '0 9 * * MON-FRI',
  pattern: String.raw`^\s*(@[A-Za-z]+(\s+(\d{1,9}[hms])+)?|([0-9*,/-]|[A-Za-z]{3})+(\s+([0-9*,/-]|[A-Za-z]{3})+){4})\s*$`,
});
const timezone = NonBlank.max(100).meta({
  description:
    'IANA time zone of the fields, such as Europe/Berlin. If clocks skip a local time, it fires later by the skipped duration; a local time that occurs twice fires the first time. If the hour is * or */n, the schedule fires in the repeated hour too and not for the skipped one. Default: UTC',
});
const maxLiveRuns = z.int().min(1).max(100).nullable().meta({
  description:
    'Runs of the schedule that may be live at once, 1 to 100. Absent or null: without a limit for the policy `allow`, 1 for the others',
});

/** Members of a schedule that requests and answers share. */
const optionalMembers = {
  agent_uid: Text.optional().describe('Agent identity as which the runs act; it must exist'),
  timezone: timezone.optional(),
  overlap: OverlapPolicy.optional(),
  max_live_runs: maxLiveRuns.optional(),
  metadata: RunMetadata.optional(),
  mode: RunMode.optional(),
  notify: NotifyRules.optional(),
};

interface WithPrompt {
  readonly prompt?: string | undefined;
  readonly agent_config?:
    | { readonly skill_spec?: unknown; readonly skills?: readonly unknown[] | undefined }
    | undefined;
}

/** Requires a prompt if the request names no skill. */
function checkPrompt(schedule: WithPrompt, context: z.RefinementCtx): void {
  const config = schedule.agent_config;
  if (schedule.prompt?.trim() || config?.skill_spec !== undefined || config?.skills?.[0] !== undefined) return;
  context.addIssue({
    code: 'custom',
    path: ['prompt'],
    message: 'is required unless agent_config.skill_spec or agent_config.skills is given',
  });
}

/** The rule of `checkPrompt` as a part of the OpenAPI document. */
const promptOrSkill = {
  anyOf: [
    { required: ['prompt'], properties: { prompt: { pattern: '\\S' } } },
    {
      required: ['agent_config'],
      properties: {
        agent_config: {
          anyOf: [{ required: ['skill_spec'] }, { required: ['skills'], properties: { skills: { minItems: 1 } } }],
        },
      },
    },
  ],
};

/** The member of a request that sets the executor of a schedule or an automation. */
export const executorUid = NonBlank.max(200).meta({
  description:
    'As whom the runs act from now on: `me`, the uid of the caller, or the uid of an agent identity that the caller may edit. Absent: at first the caller, later nothing changes',
});

const members = z.object({
  executor_uid: executorUid.optional(),
  name: NonBlank.max(200).describe('Name of the schedule, at most 200 characters'),
  cron_schedule: cronSchedule,
  prompt: Text.optional().meta({ description: 'Prompt of each run. May be left out where agent_config names a skill' }),
  agent_config: RequestedAgentConfig.optional(),
  ...optionalMembers,
});

/** `POST /agent/schedules`. */
export const CreateScheduledAgentRequest = members
  .extend({
    enabled: z.boolean().default(true).describe('False: it starts paused'),
    team: z
      .boolean()
      .optional()
      .describe(
        'False: the schedule is personal. Only its person sees, uses and changes it; administrators may also see and delete it. Absent or true: it belongs to the team',
      ),
  })
  .superRefine(checkPrompt)
  .meta({ id: 'CreateScheduledAgentRequest', description: 'A schedule to create', allOf: [promptOrSkill] });
export type CreateScheduledAgentRequest = z.infer<typeof CreateScheduledAgentRequest>;

/** `PUT /agent/schedules/{scheduleId}` needs no more members than the request that creates a schedule. */
export const UpdateScheduledAgentRequest = members
  .extend({ enabled: z.boolean().optional().describe('False: it is paused. Absent: as before') })
  .superRefine(checkPrompt)
  .meta({
    id: 'UpdateScheduledAgentRequest',
    description: 'A schedule as it shall be. Absent optional members do not change',
    allOf: [promptOrSkill],
  });
export type UpdateScheduledAgentRequest = z.infer<typeof UpdateScheduledAgentRequest>;

export const ScheduleHistory = z
  .object({
    last_ran: Timestamp.nullable()
      .optional()
      .describe('When it last started a run, RFC 3339 in UTC; null: it never did'),
    next_run: Timestamp.nullable().optional().describe('When it fires next, RFC 3339 in UTC; null: it is paused'),
  })
  .meta({ id: 'ScheduleHistory', description: 'The last and the next time of a schedule' });

/** The outcome of a fire, which is a time at which a schedule was due. */
export const FireOutcome = z.enum(['started', 'skipped', 'waiting', 'failed']).meta({
  id: 'FireOutcome',
  description:
    '`started`: a run was created. `skipped`: none, because of the overlap policy or a pause. `waiting`: the policy `queue` lets it wait for the end of a run. `failed`: the run could not be created',
});
export type FireOutcome = z.infer<typeof FireOutcome>;

export const ScheduleFire = z
  .object({
    id: Uuid.describe('Id of the fire'),
    due_at: Timestamp.optional().describe('The time of the schedule, RFC 3339 in UTC; absent: started by hand'),
    fired_at: Timestamp.describe('When the service handled it, RFC 3339 in UTC'),
    outcome: FireOutcome,
    run_id: Uuid.optional().describe('The run that was created'),
    reason: z.string().optional().describe('Why there is no run, or no run yet'),
    started_by: UserProfile.optional().meta({ description: 'Who started it by hand' }),
    schedule_name: z
      .string()
      .optional()
      .describe(
        'For an automation: name of the schedule in it, or of the schedule of the team; absent: the schedule has no name',
      ),
  })
  .meta({
    id: 'ScheduleFire',
    description: 'One fire of a schedule, or of a schedule trigger of an automation, and its outcome',
  });
export type ScheduleFire = z.infer<typeof ScheduleFire>;

export const ScheduledAgentItem = z
  .object({
    id: Uuid.describe('Id of the schedule'),
    name: z.string().describe('Name of the schedule'),
    cron_schedule: z.string().describe('When it fires'),
    enabled: z.boolean().describe('False: it is paused'),
    prompt: z.string().describe('Prompt of each run; empty where agent_config names a skill'),
    created_at: Timestamp.describe('When it was created, RFC 3339 in UTC'),
    updated_at: Timestamp.describe('When it was last changed, paused or resumed, RFC 3339 in UTC'),
    agent_config: AmbientAgentConfig.optional(),
    environment: EnvironmentConfig.optional().describe('Configuration of the environment that agent_config names'),
    history: ScheduleHistory.optional(),
    upcoming_runs: z
      .array(Timestamp)
      .optional()
      .describe('The next five times, RFC 3339 in UTC; empty while it is paused. Absent in lists'),
    last_fires: z
      .array(ScheduleFire)
      .optional()
      .meta({
        description: `The last ${maxLastFires} fires, newest first. Only in lists whose \`include\` asks for them`,
      }),
    last_spawn_error: z
      .string()
      .nullable()
      .optional()
      .describe(
        'Why the last fire could not create its run, null if it could. After 10 such failures in a row, or 10 runs in a row that failed, the schedule is paused, and this text also reports the pause',
      ),
    ...optionalMembers,
    scope: Scope.optional(),
    created_by: UserProfile.optional(),
    updated_by: UserProfile.optional().meta({ description: 'Person or agent that created it or replaced it last' }),
    waiting: WaitingAfterChange.optional(),
    executor: UserProfile.optional().meta({
      description: 'Person or agent as whom its runs act. An edit does not change it; `executor_uid` does',
    }),
  })
  .meta({
    id: 'ScheduledAgentItem',
    description: 'A scheduled agent: a prompt that becomes a run at each scheduled time',
  });
export type ScheduledAgentItem = z.infer<typeof ScheduledAgentItem>;

export const ListSchedulesQuery = z.object({
  include: z
    .array(z.enum(['fires']))
    .max(1)
    .optional()
    .meta({ description: `\`fires\`: each schedule has its last ${maxLastFires} fires in \`last_fires\`` }),
});
export type ListSchedulesQuery = z.infer<typeof ListSchedulesQuery>;

export const ListScheduledAgentsResponse = z
  .object({ schedules: z.array(ScheduledAgentItem).describe('Schedules of the team, by name') })
  .meta({ id: 'ListScheduledAgentsResponse', description: 'Schedules of the team' });
export type ListScheduledAgentsResponse = z.infer<typeof ListScheduledAgentsResponse>;

export const ListScheduleFiresQuery = z.object({
  ...pageMembers('Fires'),
});
export type ListScheduleFiresQuery = z.infer<typeof ListScheduleFiresQuery>;

export const ListScheduleFiresResponse = z
  .object({ fires: z.array(ScheduleFire).describe('Fires, newest first'), page_info: PageInfo })
  .meta({ id: 'ListScheduleFiresResponse', description: 'A page of the fires of a schedule' });
export type ListScheduleFiresResponse = z.infer<typeof ListScheduleFiresResponse>;

/** `POST /agent/schedules/preview`. */
export const PreviewScheduleRequest = z
  .object({ cron_schedule: cronSchedule, timezone: timezone.optional() })
  .meta({ id: 'PreviewScheduleRequest', description: 'When a schedule would fire' });

export const PreviewScheduleResponse = z
  .object({
    upcoming_runs: z
      .array(Timestamp)
      .describe('The next five times of a schedule that is created now, RFC 3339 in UTC'),
    timezone: z.string().describe('The time zone by its IANA name'),
  })
  .meta({ id: 'PreviewScheduleResponse', description: 'The next times of an expression' });
