import type { RunFilters } from '@runyard/contract/runs/run-list';
import type { RunState, RunTaskStatus } from '@runyard/contract/runs/states';
import { emptyEnvironment } from '@runyard/contract/wire/choices';
import { isUuid } from '../../../platform/store/database/uuid.ts';
import { specsToFind } from '../../../team/skills/spec.ts';

/** Collects the parameters of a statement. The first parameter is the id of the team. */
export interface Parameters {
  readonly values: unknown[];
  /** Adds a value and returns its placeholder. */
  bind(value: unknown): string;
}

export function startParameters(teamId: string): Parameters {
  const values: unknown[] = [teamId];
  return { values, bind: (value) => `$${values.push(value)}` };
}

/** States that change soon. */
const openStates: readonly RunState[] = ['QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS'];

const statesOfStatus: Record<RunTaskStatus, readonly RunState[]> = {
  running: openStates,
  failed: ['FAILED', 'ERROR'],
  blocked: ['BLOCKED'],
  cancelled: ['CANCELLED'],
  complete: ['SUCCEEDED'],
};

/** Returns SQL for the ids of the team's runs with a queued (`is_queued`) or live (`is_live`) execution. A run may occur twice. */
export const executing = (kind: 'is_queued' | 'is_live', more = ''): string =>
  `SELECT run_id FROM executions WHERE team_id = $1 AND ${kind} ${more}`;

/** SQL: the ids of the ancestors of the runs that are queued or at work, as an array. */
const aboveWork = `ARRAY(SELECT DISTINCT unnest(w.ancestor_ids) FROM (${executing('is_live', 'AND depth > 0')} UNION ALL
  ${executing('is_queued', 'AND depth > 0')}) e JOIN runs w ON w.id = e.run_id AND w.state IN ('QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS'))`;

/** A pair as a value of `runs.facets`. No key of a run contains an equals sign; in a filter it does not begin the value. */
const metadataFacet = ([key, value]: readonly [string, string]): string =>
  `metadata:${key.replaceAll('=', '%3D')}=${value}`;

/**
 * Returns the values of `runs.facets` that a run of the list has, besides its state and error code: one of each group. The SQL function
 * `run_facets` has the same names.
 */
function facetsOf(query: RunFilters): string[][] {
  const groups: string[][] = [];
  const one = (name: string, given: string | undefined) => {
    if (given !== undefined) groups.push([`${name}=${given}`]);
  };
  const some = (name: string, given: readonly string[] | undefined) => {
    if (given !== undefined) groups.push(given.map((each) => `${name}=${each}`));
  };
  const skill = query.skill_spec ?? query.skill;
  one('name', query.name);
  one('model_id', query.model_id);
  one('executor', query.executor);
  one('execution_location', query.execution_location);
  one('environment_id', query.environment_id === emptyEnvironment ? '' : query.environment_id);
  one('schedule_id', query.schedule_id?.toLowerCase());
  one('ancestor', query.ancestor_run_id?.toLowerCase());
  one('artifact_type', query.artifact_type);
  some('creator', query.creator);
  some(
    'source',
    query.source?.map((each) => (each === 'CUSTOM_WEBHOOK' ? 'WEBHOOK' : each)),
  );
  // A request may name a skill without its path. The run shows the path after the skill was found.
  some('skill_spec', skill === undefined ? undefined : specsToFind(skill));
  some('metadata:factory_uid', query.factory_uid);
  if (query.factory_only) groups.push(['factory']);
  for (const pair of Object.entries(query.metadata ?? {})) groups.push([metadataFacet(pair)]);
  one('metadata:automation_id', query.automation_id);
  return groups;
}

/**
 * Returns the states that runs of the list have; null: any state. `above`: the list also has ended runs with a queued or working
 * descendant.
 */
function statesOf({ state, task_status: statuses }: RunFilters): { states: RunState[] | null; above: boolean } {
  const ofStatus = statuses?.flatMap((status) => statesOfStatus[status]);
  const states = state && ofStatus ? state.filter((each) => ofStatus.includes(each)) : (state ?? ofStatus ?? null);
  return { states: states && [...states], above: statuses?.includes('running') ?? false };
}

/** SQL conditions: the run `r` has at least one value of each group. */
function hasFacets(groups: readonly (readonly string[])[], bind: Parameters['bind']): string[] {
  const numbers = (facets: readonly string[]) =>
    `ARRAY[${facets.map((each) => `run_facet($1, ${bind(each)})`).join(', ')}]::bigint[]`;
  const all = groups.flatMap((group) => (group.length === 1 ? group : []));
  const several = groups.filter((group) => group.length !== 1);
  return [
    ...(all.length === 0 ? [] : [`r.facets @> ${numbers(all)}`]),
    ...several.map((group) => `r.facets && ${numbers(group)}`),
  ];
}

/** Returns SQL conditions that are true exactly for the runs `r` of the list, except for `q`. */
export function conditionsOf(query: RunFilters, { bind }: Pick<Parameters, 'bind'>): string[] {
  const texts = ['r.team_id = $1', ...hasFacets(facetsOf(query), bind)];
  const { states, above } = statesOf(query);
  if (states) {
    const isWanted = `r.state = ANY(${bind(states)}::text[])`;
    const isAbove = () =>
      `r.id = ANY(${aboveWork})${query.state ? ` AND r.state = ANY(${bind(query.state)}::text[])` : ''}`;
    texts.push(above ? `(${isWanted} OR ${isAbove()})` : isWanted);
  }
  if (query.error_code !== undefined) texts.push(`r.error_code = ANY(${bind(query.error_code)}::text[])`);
  const times = [
    ['r.created_at >', query.created_after],
    ['r.created_at <', query.created_before],
    ['r.updated_at >', query.updated_after],
  ] as const;
  for (const [column, time] of times) if (time !== undefined) texts.push(`${column} ${bind(time)}::timestamptz`);
  if (query.run_id !== undefined) texts.push(`r.id = ANY(${bind(query.run_id.filter(isUuid))}::uuid[])`);
  return texts;
}

/** Returns lists that together contain all runs of the list; null if no index finds the runs. */
export function listsOf(query: RunFilters, { bind }: Pick<Parameters, 'bind'>): RunList[] | null {
  if (query.run_id !== undefined)
    return [{ ids: `SELECT unnest(${bind(query.run_id.filter(isUuid))}::uuid[]) AS run_id` }];
  const groups = facetsOf(query);
  const { states, above } = statesOf(query);
  const final: string[][] = [];
  if (states !== null) final.push(states.filter((each) => each !== 'QUEUED').map((each) => `state=${each}`));
  if (query.error_code !== undefined) final.push(query.error_code.map((each) => `error_code=${each}`));
  const all = [...groups, ...final];
  if (all.length === 0) return null;
  const lists: RunList[] = all.some((group) => group.length === 0)
    ? []
    : [{ where: hasFacets(all, bind), isOne: all.length === 1 }];
  // Runs in a sandbox have no state and no error code in `runs.facets`.
  if (final.length > 0) lists.push({ ids: executing('is_live') });
  if (states?.includes('QUEUED')) lists.push({ ids: executing('is_queued') });
  if (above) lists.push({ ids: `SELECT unnest(${aboveWork}) AS run_id` });
  return lists;
}

/**
 * Runs that an index finds. `where`: conditions on the run `r`; `isOne`: they come from a single filter. `ids`: SQL of a relation with the
 * column `run_id`, in any order.
 */
export type RunList = { readonly where: readonly string[]; readonly isOne: boolean } | { readonly ids: string };

/** Returns true if the query lists only runs that are queued or at work: their executions are a shorter list than the latest runs. */
export function isOnlyOpen(query: RunFilters): boolean {
  const { states, above } = statesOf(query);
  return states !== null && !above && states.every((each) => openStates.includes(each));
}
