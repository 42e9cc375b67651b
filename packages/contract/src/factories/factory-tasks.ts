/** API schemas of factory tasks. */
import { z } from 'zod';
import { maxListedTaskOutputs, maxTaskOutputs } from '../limits.ts';
import { ArtifactItem } from '../runs/artifacts.ts';
import { SortOrder } from '../runs/run-list.ts';
import { RunState } from '../runs/states.ts';
import { taskStages } from '../wire/choices.ts';
import { NonBlank, Text, Timestamp, Uuid } from '../wire/primitives.ts';
import { PageInfo, UserProfile } from '../wire/profiles.ts';
import { QueryTime } from '../wire/query-time.ts';

export const FactoryTaskStage = z.enum(taskStages).meta({
  id: 'FactoryTaskStage',
  description:
    'How far the work is, as its people and agents say. Every change is allowed. A task is also CANCELLED while its current run is CANCELLED and no later stage was written',
});
export type FactoryTaskStage = z.infer<typeof FactoryTaskStage>;

const Title = NonBlank.max(500);
const Description = Text.max(20_000).nullable();
const Stage = FactoryTaskStage.optional();

const FactoryTaskRun = z
  .object({
    run_id: Uuid.describe('Id of the run'),
    state: RunState,
    is_run_type_cancellable: z.boolean().describe('False: the run cannot be cancelled over the API'),
  })
  .meta({
    id: 'FactoryTaskRun',
    description: 'The newest run of the conversation of a task that no other run started',
  });

export const FactoryTask = z
  .object({
    uid: z.string().describe('UID of the task, 22 characters'),
    factory_uid: z.string().describe('UID of the factory'),
    conversation_id: Uuid.describe('Conversation that works on the task'),
    run_id: Uuid.describe('Newest run of the conversation when the task was created; it does not change'),
    title: z.string().describe('Title for people'),
    description: z.string().optional().describe('Text for people'),
    stage: FactoryTaskStage,
    created_at: Timestamp.describe('When it was created, RFC 3339 in UTC'),
    updated_at: Timestamp.describe(
      "When title, description or stage last changed, or the task's run was cancelled; RFC 3339 in UTC",
    ),
    author: UserProfile.optional().describe('Creator of the run `run_id`; absent: the run was deleted'),
    current_run: FactoryTaskRun.optional().describe(
      'Absent in lists without `include_current_run`, and if all runs of the conversation were deleted',
    ),
    outputs: z
      .array(ArtifactItem)
      .optional()
      .describe(
        `Artifacts other than plans, newest first. A single task has up to ${maxTaskOutputs} artifacts, from the runs of its conversation and from all runs below them. In a list with \`full_list\`, each task has up to ${maxListedTaskOutputs} artifacts of the runs of its conversation`,
      ),
    ticket_source: z
      .string()
      .optional()
      .describe('Source of the ticket that the run `run_id` was dispatched for. In lists only with `full_list`'),
    ticket_id: z
      .string()
      .optional()
      .describe('Id of the ticket that the run `run_id` was dispatched for. In lists only with `full_list`'),
  })
  .meta({
    id: 'FactoryTask',
    description: 'A piece of work of a factory: title and stage of the conversation in which it is done',
  });
export type FactoryTask = z.infer<typeof FactoryTask>;

export const CreateFactoryTaskRequest = z
  .object({
    conversation_id: Text.describe(
      'Conversation that works on the task: of a run of the team that no other run started. A conversation has at most one task',
    ),
    title: Title.describe('Title for people, at most 500 characters'),
    description: Description.optional().describe('Text for people, at most 20,000 characters'),
    stage: Stage.describe('Default: TRIAGE'),
  })
  .meta({ id: 'CreateFactoryTaskRequest', description: 'A task for a conversation' });
export type CreateFactoryTaskRequest = z.infer<typeof CreateFactoryTaskRequest>;

export const UpdateFactoryTaskRequest = z
  .object({
    title: Title.optional().describe('New title, at most 500 characters'),
    description: Description.optional().describe('New text, at most 20,000 characters; null or empty: no description'),
    stage: Stage.describe('New stage'),
  })
  .meta({ id: 'UpdateFactoryTaskRequest', description: 'Changes of a task. Absent members do not change' });
export type UpdateFactoryTaskRequest = z.infer<typeof UpdateFactoryTaskRequest>;

const FactoryTaskSortField = z
  .enum(['created_at', 'updated_at'])
  .meta({ id: 'FactoryTaskSortField', description: 'The order of a list of tasks' });

export const ListFactoryTasksQuery = z.object({
  limit: z.int().min(1).max(100).default(50).describe('Tasks of a page, 1 to 100'),
  cursor: Text.max(8192)
    .optional()
    .meta({ description: 'next_cursor of the previous page, with the same sort and filters' }),
  sort_by: FactoryTaskSortField.default('created_at'),
  sort_order: SortOrder.default('desc').describe('Direction of the list'),
  stage: z
    .array(FactoryTaskStage)
    .max(10)
    .optional()
    .describe('Repeat the parameter to match any of several stages, at most 10'),
  created_by: z
    .array(Text.max(320))
    .max(50)
    .optional()
    .describe(
      'Only tasks whose run `run_id` was created by a person of the team with this email address. Repeat it for several, at most 50',
    ),
  created_after: QueryTime.optional().describe(
    'Only tasks that were created after this time: RFC 3339 with Z or an offset',
  ),
  created_before: QueryTime.optional().describe(
    'Only tasks that were created before this time: RFC 3339 with Z or an offset',
  ),
  updated_after: QueryTime.optional().describe('Only tasks that changed after this time: RFC 3339 with Z or an offset'),
  q: Text.max(200).optional().describe('Part of the title, in any case'),
  full_list: z.boolean().default(false).describe('True: the tasks have `outputs`, `ticket_source` and `ticket_id`'),
  include_current_run: z.boolean().default(false).describe('True: the tasks have `current_run`'),
});
export type ListFactoryTasksQuery = z.infer<typeof ListFactoryTasksQuery>;

export const SearchFactoryTasksQuery = z.object({
  q: Text.min(1).max(200).describe('Part of the title, in any case'),
  limit: z.int().min(1).max(100).default(20).describe('Tasks to return, 1 to 100'),
});
export type SearchFactoryTasksQuery = z.infer<typeof SearchFactoryTasksQuery>;

export const SearchFactoryTasksResponse = z
  .object({ tasks: z.array(FactoryTask).describe('Tasks of all factories, the last created first') })
  .meta({ id: 'SearchFactoryTasksResponse', description: 'Tasks with a text in their titles' });

export const FindFactoryTaskQuery = z.object({
  reference: Text.min(1)
    .max(2_000)
    .describe(
      'UID of the task, id or page of one of its runs, its ticket (`SOURCE:ID`, id or address), or the address or branch of a pull request of its runs',
    ),
});

export const ListFactoryTasksResponse = z
  .object({ tasks: z.array(FactoryTask).describe('Tasks of the factory'), page_info: PageInfo })
  .meta({ id: 'ListFactoryTasksResponse', description: 'A page of tasks' });
export type ListFactoryTasksResponse = z.infer<typeof ListFactoryTasksResponse>;
