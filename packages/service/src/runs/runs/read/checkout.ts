/** The head of a pull request, which a run checks out instead of the default branch of its repository. */
import type { EnvironmentConfig } from '@runyard/contract/environments/environments';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, json, nullable } from '../../../platform/store/database/statement.ts';

/** The service decides about it from an event or an answer of the code host. No request can set it. */
export interface RunCheckout {
  readonly owner: string;
  readonly repo: string;
  /** Number of the pull request. */
  readonly number: number;
  /** Id of the commit: 40 hexadecimal digits. Git checks the content against it, so nobody can give the run another one. */
  readonly commit: string;
  /** True if the commit belongs to another repository, so anybody may have written it. */
  readonly is_fork: boolean;
}

/** Returns the configuration of an environment in which the repository is checked out at the head of the pull request. */
export function atCheckout<T extends Pick<EnvironmentConfig, 'github_repos'>>(
  config: T | null,
  checkout: RunCheckout | null,
): T | null {
  if (config === null || checkout === null) return config;
  const isSame = (a: string, b: string) => a.toLowerCase() === b.toLowerCase();
  const repositories = (config.github_repos ?? []).map((each) =>
    isSame(each.owner, checkout.owner) && isSame(each.repo, checkout.repo) ? { ...each, ref: checkout.commit } : each,
  );
  return { ...config, github_repos: repositories };
}

const read = defineStatement({
  name: 'read_checkout_of_run',
  text: 'SELECT checkout FROM run_requests WHERE run_id = $1',
  row: { checkout: nullable(json<RunCheckout>()) },
});

/** Returns the head of a pull request that the run checks out; null: none. */
export const readCheckout = async (db: Queryable, runId: string): Promise<RunCheckout | null> =>
  (await db.query(read, [runId]))[0]?.checkout ?? null;
