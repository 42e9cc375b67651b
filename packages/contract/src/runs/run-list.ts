import { z } from 'zod';
import { maxCreatorFilters, maxFactoryFilters, maxMetadataFilters, maxRunIdFilters } from '../limits.ts';
import { ErrorCode } from '../wire/errors.ts';
import { Text } from '../wire/primitives.ts';
import { QueryTime } from '../wire/query-time.ts';
import { ArtifactType, RunExecutionLocation, RunSourceType, RunState, RunTaskStatus } from './states.ts';

/** The orders of a list of runs. */
const RunSortField = z
  .enum(['updated_at', 'created_at', 'title', 'agent'])
  .meta({ id: 'RunSortField', description: 'The order of a list of runs' });

/** Direction of a list. */
export const SortOrder = z
  .enum(['asc', 'desc'])
  .meta({ id: 'SortOrder', description: '`asc`: smallest or oldest first. `desc`: greatest or newest first' });

/** The forms of the items of a list of runs. */
const RunView = z.enum(['full', 'summary']).meta({
  id: 'RunView',
  description: '`full`: whole items. `summary`: only the members for a row of a list, without prompt and configuration',
});

/** The filters of lists and counts of runs. All of them must match. */
export const RunFilters = z.object({
  run_id: z
    .array(Text)
    .max(maxRunIdFilters)
    .optional()
    .meta({
      description: `Repeat the parameter to match any of several runs, at most ${maxRunIdFilters}. Ids of no run of the team match nothing`,
    }),
  state: z.array(RunState).optional().meta({ description: 'Repeat the parameter to match any of several states' }),
  name: Text.optional().meta({ description: '`config.name`' }),
  model_id: Text.optional().describe('Only runs whose configuration names this model'),
  error_code: z.array(ErrorCode).optional().meta({
    description: 'Code of `status_message`. Repeat the parameter to match any of several codes',
  }),
  creator: z
    .array(Text)
    .max(maxCreatorFilters)
    .optional()
    .meta({
      description: `UID of a user or service account. Repeat the parameter to match any of several creators, at most ${maxCreatorFilters}`,
    }),
  executor: Text.optional().meta({ description: 'UID of a user or service account' }),
  source: z.array(RunSourceType).optional().meta({
    description: 'Repeat the parameter to match any of several sources. CUSTOM_WEBHOOK is another name of WEBHOOK',
  }),
  task_status: z.array(RunTaskStatus).optional().meta({
    description: 'Repeat the parameter to match any of several. `running` also looks at the runs below each run',
  }),
  execution_location: RunExecutionLocation.optional(),
  created_after: QueryTime.optional().describe(
    'Only runs that were created after this time: RFC 3339 with Z or an offset',
  ),
  created_before: QueryTime.optional().describe(
    'Only runs that were created before this time: RFC 3339 with Z or an offset',
  ),
  updated_after: QueryTime.optional().describe('Only runs that changed after this time: RFC 3339 with Z or an offset'),
  environment_id: Text.optional().meta({ description: '`empty-environment`: runs without one' }),
  skill: Text.optional().meta({ description: 'Alias of skill_spec' }),
  skill_spec: Text.optional().describe('Only runs that follow this skill'),
  schedule_id: Text.optional().describe('Only runs that this schedule created'),
  ancestor_run_id: Text.optional().meta({
    description: 'Descendants of this run, at any depth. It must be a run of the team',
  }),
  metadata: z
    .record(Text, Text)
    .refine((pairs) => Object.keys(pairs).length <= maxMetadataFilters, {
      error: `takes at most ${maxMetadataFilters} pairs`,
    })
    .meta({ maxProperties: maxMetadataFilters })
    .optional()
    .meta({
      description: '`metadata[key]=value`; all pairs must match exactly. A team may have this filter turned off',
    }),
  artifact_type: ArtifactType.optional(),
  automation_id: Text.optional().meta({
    description: 'Automation that started the runs: value of the metadata key of that name',
  }),
  factory_uid: z
    .array(Text)
    .max(maxFactoryFilters)
    .optional()
    .meta({
      description: `Factory that got the runs, or whose automations started the runs: value of the metadata key factory_uid. Repeat the parameter to match any of several factories, at most ${maxFactoryFilters}`,
    }),
  factory_only: z.boolean().optional().meta({ description: 'true: only runs that an agent of a factory executes' }),
  q: Text.max(500).optional().meta({
    description:
      'The id of a run, or the URL of its page; or up to 10 words, in any case and order. A run matches if each of these words is anywhere in its title or skill, or begins a word of its prompt (first 4,000 characters). If no run matches, words of four or more letters also match words of title and skill that differ in one letter',
  }),
});
export type RunFilters = z.infer<typeof RunFilters>;

/** Query of `GET /agent/runs`. */
export const ListRunsQuery = z.object({
  limit: z.int().min(1).max(500).default(20).meta({
    description: 'A full page has fewer runs if their prompts and configurations exceed 16 MB',
  }),
  cursor: Text.max(8192)
    .optional()
    .meta({ description: 'next_cursor of the previous page, with the same sort and filters' }),
  view: RunView.default('full'),
  sort_by: RunSortField.default('updated_at').meta({ description: 'agent: by skill, runs without a skill last' }),
  sort_order: SortOrder.default('desc').describe('Direction of the list'),
  ...RunFilters.shape,
});
export type ListRunsQuery = z.infer<typeof ListRunsQuery>;
