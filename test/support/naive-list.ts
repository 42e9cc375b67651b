/** Computes the expected result of a list in the simplest way: checks every run and sorts all matching runs. */
import type { ListRunsQuery } from '@runyard/contract/runs/run-list';
import type { Queryable } from '../../packages/service/src/platform/store/database/database.ts';

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
const working = (run: string): string => `${run}.state IN ('QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS')`;
const hasMetadata: Condition = (value, bind) => `r.metadata @> ${bind(JSON.stringify(value))}::jsonb`;

const conditions: Partial<Record<keyof ListRunsQuery, Condition>> = {
  state: (value, bind) => `r.state = ANY(${bind(value)}::text[])`,
  name: equals('name'),
  model_id: equals('model_id'),
  run_id: (value, bind) => `r.id::text = ANY(${bind(value)}::text[])`,
  error_code: (value, bind) => `r.error_code = ANY(${bind(value)}::text[])`,
  creator: (value, bind) => `r.creator_uid = ANY(${bind(value)}::text[])`,
  executor: equals('executor_uid'),
  source: (value, bind) => `r.source = ANY(${bind(value)}::text[])`,
  task_status: (value, bind) =>
    `EXISTS (SELECT FROM unnest(${bind(value)}::text[]) s WHERE CASE s
      WHEN 'running' THEN ${working('r')} OR r.id IN (SELECT unnest(d.ancestor_ids) FROM runs d WHERE ${working('d')})
      WHEN 'failed' THEN r.state IN ('FAILED', 'ERROR') WHEN 'complete' THEN r.state = 'SUCCEEDED' ELSE upper(s) = r.state END)`,
  factory_uid: (value, bind) => `r.metadata->>'factory_uid' = ANY(${bind(value)}::text[])`,
  factory_only: () => `jsonb_path_exists(q.contents, '$[*] ? (@.kind == "definition")')`,
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

interface Texts {
  readonly id: string;
  readonly heading: string;
  readonly prompt: string;
}

const wordsIn = (text: string): string[] => text.toLowerCase().match(/[\p{L}\p{M}\p{N}]+/gu) ?? [];

/**
 * A function that returns whether the texts of a run match one word of the query.
 */
type Match = (texts: Texts) => boolean;

const exactly = (word: string): Match => {
  const atWordStart = new RegExp(`(?<![\\p{L}\\p{M}\\p{N}])${word}`, 'iu');
  return ({ heading, prompt }) => heading.toLowerCase().includes(word) || atWordStart.test(prompt);
};

const similarly = (word: string): Match => {
  if (word.length < 4 || /\d/.test(word)) return exactly(word);
  const isOneSlip = oneSlipFrom(word);
  return ({ heading }) => wordsIn(heading).some((other) => other.length > 3 && !/\d/.test(other) && isOneSlip(other));
};

/** Returns the text itself, and for each of its letters the text without this letter. */
const withoutALetter = (text: string) => [text, ...[...text].map((_, at) => text.slice(0, at) + text.slice(at + 1))];

/**
 * Returns a function that tells whether another word differs from `word` by at most one wrong, missing, additional or exchanged
 * letter. If `word` is long, the other word may also have further letters at its end.
 */
function oneSlipFrom(word: string): (other: string) => boolean {
  const lefts = withoutALetter(word);
  return (other) =>
    withoutALetter(other).some((right) =>
      lefts.some((left) => (word.length < 6 ? right === left : right.startsWith(left))),
    );
}

/** Returns the ids of the first `count` runs of the list, latest or oldest change first. */
export async function naiveList(db: Queryable, teamId: string, query: ListRunsQuery, count: number): Promise<string[]> {
  const values: unknown[] = [teamId];
  const bind: Bind = (value) => `$${values.push(value)}`;
  const texts = ['r.team_id = $1'];
  for (const [name, value] of Object.entries(query)) {
    const condition = conditions[name as keyof ListRunsQuery];
    if (condition) texts.push(condition(value, bind));
  }
  const words = query.q === undefined ? null : wordsIn(query.q);
  const rows = await db.query<Texts>(
    `WITH matching AS MATERIALIZED (
       SELECT r.id, r.updated_at, ${words ? "left(r.title, 500) || ' ' || coalesce(r.skill_spec, '')" : "''"} AS heading,
         ${words ? 'left(q.prompt, 4000)' : "''"} AS prompt
       FROM runs r JOIN run_requests q ON q.run_id = r.id WHERE ${texts.join(' AND ')})
     SELECT id, heading, prompt FROM matching ORDER BY updated_at ${query.sort_order}, id ${query.sort_order}`,
    values,
  );
  const having = (matchOf: (word: string) => Match) => {
    const matches = (words ?? []).map(matchOf);
    return rows.filter((row) => matches.every((match) => match(row)));
  };
  const exact = having(exactly);
  return (exact.length > 0 || words === null ? exact : having(similarly)).slice(0, count).map(({ id }) => id);
}
