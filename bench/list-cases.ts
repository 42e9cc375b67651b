/** The requests that `list.ts` measures. */
import type { ListRunsQuery } from '@runyard/contract/runs/run-list';
import { type Seeded, skewed } from './list-seed.ts';

/** The members of a ListRunsQuery that a case sets. */
type Query = Record<string, unknown>;
/** Returns the query for the nth measurement of a filter. */
export type Make = (n: number, random: () => number) => Query;

const oneOf = <T>(values: readonly T[], n: number): T => values[Math.floor(n) % values.length] as T;
const daysAgo = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString();

/**
 * Returns, for each filter, the function that makes its queries for `count` seeded runs. The queries filter by frequent values, rare
 * values, values that only old runs have, and values that no run has.
 */
export function casesOf(seeded: Seeded, count: number): Record<string, Make> {
  const some =
    (name: string, prefix: string, size: number, ...others: string[]): Make =>
    (n, random) => ({
      [name]: n % 4 === 0 ? oneOf([...others, 'nothing'], n / 4) : `${prefix}${skewed(random, size)}`,
    });
  const spread: Make = (_, random) => ({ at: daysAgo(180 * random()) });
  const time =
    (name: string): Make =>
    (n, random) => ({ [name]: spread(n, random).at });
  const word = (random: () => number, from: number, to: number) =>
    seeded.vocabulary[Math.floor(from + random() * (to - from))] ?? '';
  return {
    none: () => ({}),
    'state, one': (n) => ({ state: [oneOf(['SUCCEEDED', 'FAILED', 'BLOCKED', 'INPROGRESS', 'CANCELLED'], n)] }),
    'state, several': (n) => ({
      state: oneOf(
        [
          ['FAILED', 'ERROR'],
          ['QUEUED', 'INPROGRESS', 'BLOCKED'],
          ['SUCCEEDED', 'CANCELLED'],
        ],
        n,
      ),
    }),
    name: some('name', 'agent-', 80),
    model_id: some('model_id', 'model-', 12, 'retired-model'),
    creator: (n, random) => ({ creator: [n % 4 === 0 ? 'nothing' : `user-${skewed(random, 200)}`] }),
    'creator, several': (_, random) => ({ creator: [`user-${skewed(random, 200)}`, 'nobody', 'user-199'] }),
    'error_code, one': (n) => ({
      error_code: [oneOf(['environment_setup_failed', 'budget_exceeded', 'resource_unavailable', 'conflict'], n)],
    }),
    'error_code, several': () => ({ error_code: ['budget_exceeded', 'resource_unavailable'] }),
    run_id: (n) => ({ run_id: seeded.ancestors.slice(0, 1 + (n % 100)) }),
    executor: some('executor', 'user-', 200, 'account-3'),
    source: (n) => ({ source: [oneOf(['API', 'CLI', 'JIRA', 'LINEAR', 'SCHEDULED_AGENT'], n)] }),
    'source, several': (n) => ({
      source: oneOf(
        [
          ['API', 'JIRA'],
          ['CLI', 'SLACK', 'LINEAR'],
        ],
        n,
      ),
    }),
    'task_status, one': (n) => ({ task_status: [oneOf(['running', 'failed', 'blocked', 'complete'], n)] }),
    'task_status, several': (n) => ({
      task_status: oneOf(
        [
          ['running', 'failed'],
          ['running', 'blocked'],
        ],
        n,
      ),
    }),
    'factory_uid, one': (_, random) => ({ factory_uid: [`factory-${skewed(random, 9)}`] }),
    'factory_uid, several': (_, random) => ({
      factory_uid: [`factory-${skewed(random, 9)}`, 'factory-7', `factory-${skewed(random, 9)}`],
    }),
    factory_only: () => ({ factory_only: true }),
    execution_location: (n) => ({ execution_location: oneOf(['LOCAL', 'REMOTE'], n) }),
    created_after: time('created_after'),
    created_before: time('created_before'),
    updated_after: time('updated_after'),
    environment_id: some('environment_id', 'env-', 40, 'env-retired', 'empty-environment'),
    skill_spec: (n, random) => ({
      [oneOf(['skill', 'skill_spec'], n)]: `owner/repo:skills/skill-${skewed(random, 310)}/SKILL.md`,
    }),
    schedule_id: (_, random) => ({
      schedule_id: `01900000-0000-7000-8000-1${String(skewed(random, 62)).padStart(11, '0')}`,
    }),
    ancestor_run_id: (n) => ({ ancestor_run_id: oneOf(seeded.ancestors, n) }),
    'metadata, one pair': (n, random) => ({
      metadata: oneOf<Record<string, string>>(
        [
          { repository: `owner/repository-${skewed(random, 60)}` },
          { stage: 'prod' },
          { ticket: `T-${Math.floor(random() * count)}` },
          { campaign: 'last-summer' },
        ],
        n,
      ),
    }),
    'metadata, two pairs': (_, random) => ({
      metadata: {
        stage: oneOf(['prod', 'dev'], Math.floor(random() * 2)),
        repository: `owner/repository-${skewed(random, 60)}`,
      },
    }),
    automation_id: () => ({ automation_id: 'nothing' }),
    artifact_type: (n) => ({
      artifact_type: oneOf(['PLAN', 'PULL_REQUEST', 'SCREENSHOT', 'FILE', 'EXTERNAL_REFERENCE'], n),
    }),
    'state and source': (n) => ({
      state: [oneOf(['SUCCEEDED', 'FAILED', 'ERROR', 'BLOCKED'], n)],
      source: [oneOf(['API', 'CLI', 'JIRA', 'SCHEDULED_AGENT', 'SLACK'], n / 4)],
    }),
    'environment and creator': (n, random) => ({
      environment_id: oneOf(['env-0', 'env-retired', 'empty-environment', `env-${skewed(random, 40)}`], n),
      creator: [`user-${skewed(random, 200)}`],
    }),
    'error_code and creator': (n, random) => ({
      error_code: [oneOf(['environment_setup_failed', 'budget_exceeded'], n)],
      creator: [`user-${skewed(random, 200)}`],
    }),
    'name and metadata': (_, random) => ({
      name: `agent-${skewed(random, 80)}`,
      metadata: { repository: `owner/repository-${skewed(random, 60)}` },
    }),
    'old model, location and source': (n) => ({
      model_id: 'retired-model',
      execution_location: oneOf(['LOCAL', 'REMOTE'], n),
      source: [oneOf(['API', 'CLI', 'SLACK'], n / 2)],
    }),
    'several factories, statuses and sources': (n, random) => ({
      factory_uid: [`factory-${skewed(random, 9)}`, 'factory-7'],
      task_status: oneOf([['running', 'failed'], ['complete']], n),
      source: oneOf([['API', 'CLI'], ['SLACK']], n / 2),
    }),
    'several factories and an artifact': (_, random) => ({
      factory_uid: [`factory-${skewed(random, 9)}`, 'factory-7'],
      artifact_type: 'PLAN',
    }),
    'metadata, artifact and state': (n, random) => ({
      metadata: { stage: oneOf(['prod', 'dev'], n), repository: `owner/repository-${skewed(random, 60)}` },
      artifact_type: oneOf(['PLAN', 'EXTERNAL_REFERENCE', 'SCREENSHOT'], n),
      state: ['FAILED', 'ERROR'],
    }),
    'schedule and state, created before': (_, random) => ({
      schedule_id: `01900000-0000-7000-8000-1${String(skewed(random, 60)).padStart(11, '0')}`,
      state: ['CANCELLED'],
      created_before: daysAgo(180 * random()),
    }),
    'q, frequent word, and state': (n, random) => ({
      q: word(random, 0, 300),
      state: [oneOf(['FAILED', 'BLOCKED'], n)],
    }),
    'q, frequent word': (_, random) => ({ q: word(random, 0, 300) }),
    'q, word': (_, random) => ({ q: word(random, 300, 20_000) }),
    'q, beginning of a word': (_, random) => ({ q: word(random, 0, 20_000).slice(0, 5) }),
    'q, two words': (_, random) => ({ q: `${word(random, 0, 3000)} ${word(random, 0, 20_000)}` }),
    'q, ticket': (_, random) => ({ q: `ticket-${Math.floor((random() * count) / 2) * 2}` }),
    'q, misspelt': (_, random) => ({ q: word(random, 0, 20_000).replace(/^(...)(.)(.)/, '$1$3$2') }),
  };
}

/** Every sort in both directions. */
export const sorts: [ListRunsQuery['sort_by'], ListRunsQuery['sort_order']][] = (
  ['updated_at', 'created_at', 'title', 'agent'] as const
).flatMap((by) =>
  [[by, 'desc'] as const, [by, 'asc'] as const].map(([key, order]): [typeof by, 'desc' | 'asc'] => [key, order]),
);
