import { emptyEnvironment, type ListRunsQuery } from '@runyard/contract/run-list';

/** Collects conditions and their parameters; `$1` is the team. */
export interface Conditions {
  readonly texts: string[];
  readonly values: unknown[];
  /** Adds a value and gives its placeholder. */
  bind(value: unknown): string;
}

export function startConditions(teamId: string): Conditions {
  const values: unknown[] = [teamId];
  const texts = ['r.team_id = $1'];
  return {
    texts,
    values,
    bind: (value) => {
      values.push(value);
      return `$${values.length}`;
    },
  };
}

/** Escapes what LIKE reads as a pattern. */
const likeText = (text: string): string => text.replaceAll(/[\\%_]/g, '\\$&');

/** Adds the query's filters. All must match; each word of `q` must be in title, prompt or skill, in any case. */
export function addFilters(conditions: Conditions, query: ListRunsQuery): void {
  const { texts, bind } = conditions;
  const equal = (column: string, value: string | undefined) => {
    if (value !== undefined) texts.push(`r.${column} = ${bind(value)}`);
  };
  equal('name', query.name);
  equal('model_id', query.model_id);
  equal('creator_uid', query.creator);
  equal('executor_uid', query.executor);
  equal('source', query.source);
  equal('execution_location', query.execution_location);
  equal('skill_spec', query.skill_spec ?? query.skill);
  if (query.state !== undefined) texts.push(`r.state = ANY(${bind(query.state)}::text[])`);
  if (query.created_after !== undefined) texts.push(`r.created_at > ${bind(query.created_after)}::timestamptz`);
  if (query.created_before !== undefined) texts.push(`r.created_at < ${bind(query.created_before)}::timestamptz`);
  if (query.updated_after !== undefined) texts.push(`r.updated_at > ${bind(query.updated_after)}::timestamptz`);
  if (query.environment_id === emptyEnvironment) texts.push('r.environment_id IS NULL');
  else equal('environment_id', query.environment_id);
  if (query.schedule_id !== undefined) texts.push(`r.schedule_id::text = ${bind(query.schedule_id)}`);
  if (query.ancestor_run_id !== undefined) texts.push(`r.ancestor_ids @> ARRAY[${bind(query.ancestor_run_id)}::uuid]`);
  const metadata = {
    ...query.metadata,
    ...(query.automation_id === undefined ? {} : { automation_id: query.automation_id }),
  };
  if (Object.keys(metadata).length > 0) texts.push(`r.metadata @> ${bind(JSON.stringify(metadata))}::jsonb`);
  if (query.artifact_type !== undefined) {
    texts.push(
      `EXISTS (SELECT 1 FROM artifacts a WHERE a.run_id = r.id AND a.is_ready AND a.artifact_type = ${bind(query.artifact_type)})`,
    );
  }
  for (const word of new Set((query.q ?? '').split(/\s+/).filter(Boolean).slice(0, 10))) {
    const pattern = bind(`%${likeText(word)}%`);
    texts.push(`(r.title ILIKE ${pattern} OR r.prompt ILIKE ${pattern} OR r.skill_spec ILIKE ${pattern})`);
  }
}
