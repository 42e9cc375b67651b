import type { Client } from '@runyard/client';
import type { RunState } from '@runyard/contract/runs/states';
import { emptyEnvironment } from '@runyard/contract/wire/choices';
import { parsePair } from '../../input/parse-pair.ts';
import { idOf } from '../../service/named.ts';
import { resolveRunId } from '../../service/run-id.ts';

type Query = NonNullable<NonNullable<Parameters<Client['listRuns']>[0]>['query']>;

/** Options of `runs`, as they are named on the command line. */
export interface RunFilters {
  readonly state?: readonly RunState[];
  readonly name?: string;
  readonly model?: string;
  readonly environment?: string;
  readonly skill?: string;
  readonly schedule?: string;
  readonly factory?: string;
  readonly automation?: string;
  readonly below?: string;
  readonly creator?: string;
  readonly executor?: string;
  readonly source?: string;
  readonly location?: string;
  readonly artifact?: string;
  readonly metadata?: readonly string[];
  readonly createdAfter?: string;
  readonly createdBefore?: string;
  readonly updatedAfter?: string;
  readonly search?: string;
  readonly sort?: string;
  readonly order?: string;
}

/** Options whose value is sent unchanged as a parameter. */
const parameters = {
  name: 'name',
  model: 'model_id',
  skill: 'skill_spec',
  automation: 'automation_id',
  creator: 'creator',
  executor: 'executor',
  source: 'source',
  location: 'execution_location',
  artifact: 'artifact_type',
  createdAfter: 'created_after',
  createdBefore: 'created_before',
  updatedAfter: 'updated_after',
  search: 'q',
  sort: 'sort_by',
  order: 'sort_order',
} as const;

/**
 * Returns the query for the list of runs. Without `--sort`, the newest run is first. If an option names an environment, a schedule or
 * another thing, finds the id of this thing.
 */
export async function runsQuery(client: Client, filters: RunFilters): Promise<Query> {
  const queryPairs = Object.entries(parameters).flatMap(([option, parameter]) => {
    const value = filters[option as keyof typeof parameters];
    return value === undefined ? [] : [[parameter, value]];
  });
  const { state, environment, schedule, factory, below, metadata } = filters;
  return {
    sort_by: 'created_at',
    ...Object.fromEntries(queryPairs),
    ...(state ? { state: [...state] } : {}),
    ...(environment === undefined
      ? {}
      : { environment_id: environment === 'none' ? emptyEnvironment : await idOf.environment(client, environment) }),
    ...(schedule === undefined ? {} : { schedule_id: await idOf.schedule(client, schedule) }),
    ...(factory === undefined ? {} : { factory_uid: [await idOf.factory(client, factory)] }),
    ...(below === undefined ? {} : { ancestor_run_id: await resolveRunId(client, below) }),
    ...(metadata === undefined ? {} : { metadata: Object.fromEntries(metadata.map(parsePair)) }),
  };
}
