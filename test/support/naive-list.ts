/** What a list must give, found in the plainest way: every run is looked at, and all that match are sorted. */
import type { ListRunsQuery } from '@runyard/contract/run-list';
import { wordsOf } from '../../packages/service/src/runs/list-search.ts';
import type { Queryable } from '../../packages/service/src/store/database.ts';

type Bind = (value: unknown) => string;
type Condition = (value: unknown, bind: Bind) => string;

const equals =
  (column: string): Condition =>
  (value, bind) =>
    `r.${column}::text = ${bind(value)}`;
const time =
  (column: string, operator: string): Condition =>
  (value, bind) =>
    `r.${column} ${operator} ${bind(value)}::timestamptz`;
const hasMetadata: Condition = (value, bind) => `r.metadata @> ${bind(JSON.stringify(value))}::jsonb`;

const conditions: Partial<Record<keyof ListRunsQuery, Condition>> = {
  state: (value, bind) => `r.state = ANY(${bind(value)}::text[])`,
  name: equals('name'),
  model_id: equals('model_id'),
  creator: equals('creator_uid'),
  executor: equals('executor_uid'),
  source: equals('source'),
  execution_location: equals('execution_location'),
  skill: equals('skill_spec'),
  skill_spec: equals('skill_spec'),
  schedule_id: equals('schedule_id'),
  environment_id: (value, bind) =>
    value === 'empty-environment' ? 'r.environment_id IS NULL' : equals('environment_id')(value, bind),
  created_after: time('created_at', '>'),
  created_before: time('created_at', '<'),
  updated_after: time('updated_at', '>'),
  ancestor_run_id: (value, bind) => `${bind(value)}::uuid = ANY(r.ancestor_ids)`,
  metadata: hasMetadata,
  automation_id: (value, bind) => hasMetadata({ automation_id: value }, bind),
  artifact_type: (value, bind) =>
    `EXISTS (SELECT FROM artifacts a WHERE a.run_id = r.id AND a.is_ready AND a.artifact_type = ${bind(value)})`,
};

const exactly = (word: string, bind: Bind) =>
  `(s.words @@ to_tsquery('simple', ${bind(`'${word}':*`)}) OR s.heading ILIKE ${bind(`%${word}%`)})`;
const similarly = (word: string, bind: Bind) => `word_similarity(${bind(word)}, s.heading) >= 0.5`;

/** Ids of the first `count` runs of the list, latest or oldest change first. */
export async function naiveList(db: Queryable, teamId: string, query: ListRunsQuery, count: number): Promise<string[]> {
  const found = async (word: (word: string, bind: Bind) => string) => {
    const values: unknown[] = [teamId];
    const bind: Bind = (value) => `$${values.push(value)}`;
    const texts = ['r.team_id = $1', ...(wordsOf(query.q) ?? []).map((each) => word(each, bind))];
    for (const [name, value] of Object.entries(query)) {
      const condition = conditions[name as keyof ListRunsQuery];
      if (condition) texts.push(condition(value, bind));
    }
    const rows = await db.query<{ id: string }>(
      `WITH matching AS MATERIALIZED (
         SELECT r.id, r.updated_at FROM runs r JOIN run_search s ON s.run_id = r.id WHERE ${texts.join(' AND ')}
       ) SELECT id FROM matching ORDER BY updated_at ${query.sort_order}, id ${query.sort_order} LIMIT ${count}`,
      values,
    );
    return rows.map(({ id }) => id);
  };
  const exact = await found(exactly);
  return exact.length > 0 || query.q === undefined ? exact : await found(similarly);
}
