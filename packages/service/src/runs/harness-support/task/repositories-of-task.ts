import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import { allowedHostsOf } from '@runyard/contract/egress/network';
import type { EnvironmentRepository, Repository } from '@runyard/contract/environments/repositories';
import { runnerOf } from '@runyard/contract/runs/runner';
import { type ErrorDetail, errorSlug } from '@runyard/contract/wire/errors';
import type { Signer } from '../../../platform/secrets/signer.ts';
import { configuringKinds } from '../../../team/access/contents/run-rights.ts';
import type { RepositoryAnswer } from '../../../team/code-hosts/ask-repositories.ts';
import type { CodeHosts } from '../../../team/code-hosts/code-hosts.ts';
import type { GrantedSecrets } from './grant-secrets.ts';
import type { TaskRow } from './read-task-row.ts';

/** Fixed provider names of well-known code hosts. */
const providers: Readonly<Record<string, string>> = { 'github.com': 'github', 'gitlab.com': 'gitlab' };

interface Refused {
  readonly kind: 'no_access';
  readonly message: string;
  readonly detail: ErrorDetail;
}

/**
 * Finds the repositories that the code host refuses to a run, in the answers about all repositories of the run. Returns null if no
 * repository is refused.
 */
export function findRefused(
  { codeHosts, baseUrl }: { readonly codeHosts: Pick<CodeHosts, 'hostOf'>; baseUrl(): string },
  answers: readonly RepositoryAnswer[],
): Refused | null {
  const refusals = answers.filter((answer) => answer.kind === 'refused');
  const [first] = refusals;
  if (first === undefined) return null;
  const host = codeHosts.hostOf(first.repository);
  const advice = `Store a credential for ${host} with bin/runyard code-hosts add, or correct github_repos of the environment, and start the run again.`;
  const message = [...refusals.map(({ reason }) => reason), advice].join('\n');
  return {
    kind: 'no_access',
    message,
    detail: detailOf(
      { codeHosts, baseUrl },
      first.repository,
      refusals.map(({ repository }) => repository),
    ),
  };
}

/** Returns the members of `external_authentication_required` for repositories on the same host as `first`. */
export function detailOf(
  { codeHosts, baseUrl }: { readonly codeHosts: Pick<CodeHosts, 'hostOf'>; baseUrl(): string },
  first: Repository,
  repositories: readonly Repository[],
): ErrorDetail {
  const host = codeHosts.hostOf(first);
  return {
    provider: providers[host] ?? host,
    auth_url: `${baseUrl()}/errors/${errorSlug('external_authentication_required')}`,
    inaccessible_repos: repositories.map(({ owner, repo }) => `${owner}/${repo}`),
  };
}

/** Returns whether a personal credential of the run's executor reads the repository. */
export const isReadByPerson = (answer: RepositoryAnswer): boolean =>
  answer.kind === 'readable' && answer.isPersonal === true;

/** Increase this version when agents begin to prepare or pack workspaces in another way. */
const version = 2;

export interface NamedObjects {
  /** Returns the head commit and the name of the mirror of a repository; an empty object if they are unknown at the moment. */
  mirrorOf(repository: EnvironmentRepository): Pick<AgentTask['repositories'][number], 'head' | 'mirror'>;
  readonly prepared: Pick<AgentTask, 'prepared_workspace' | 'not_prepared'>;
}

/**
 * Names the objects that a run may read from a worker's cache and store in it. These are mirrors of repositories, one for each team and
 * credential, and the prepared workspace, one for each team, revision of the environment,
 * image and executor. There is no prepared workspace if the code host did not answer for a repository, or if the agent of the run gets
 * secrets, because the setup gets these secrets too and could write them into a file. Secrets that only the setup gets do not prevent it,
 * because the agent searches the files for them. Their names, forms and values are part of the signed name.
 *
 * Only the service can create such a name: it signs everything that the object depends on, including the team that may use the object. So
 * two teams never get the same name. A run gets the name of a mirror only after the code host has let the run read the repository with the
 * run's own credential.
 */
export function nameKeptObjects(
  signing: Pick<Signer, 'nameOf'>,
  teamId: string,
  row: TaskRow,
  answers: readonly RepositoryAnswer[],
  granted: Pick<GrantedSecrets, 'secrets' | 'setupSecrets'>,
): NamedObjects {
  const nameOf = (purpose: string, parts: unknown): string =>
    signing.nameOf(`worker cache ${purpose}`, JSON.stringify(parts));
  const readable = answers.filter((answer) => answer.kind === 'readable');
  const clonable = readable.flatMap(({ head, ...readable }) => (head === null ? [] : [{ ...readable, head }]));
  const config = row.environment_config ?? {};
  const isWhole = clonable.length === (config.github_repos ?? []).length;
  const references = [...(row.config.secrets ?? []), ...(config.secrets ?? [])];
  const ofAgent = [...references.filter(({ phase }) => phase === undefined), ...granted.secrets].map(
    ({ name }) => name,
  );
  const allowedHosts = allowedHostsOf(config.network).sort();
  const hasSetup = clonable.length > 0 || !isEmpty(config.setup_commands);
  const preparedOf = (): NamedObjects['prepared'] => {
    if (!hasSetup || row.environment_uid === null) return {};
    if (ofAgent.length > 0)
      return {
        not_prepared: `the agent gets secrets (${[...new Set(ofAgent)].join(', ')}), which the setup could write into files; secrets with phase setup do not prevent keeping`,
      };
    if (row.checkout?.is_fork)
      return { not_prepared: 'the pull request comes from a fork, which anybody may have written' };
    if (!isWhole) return { not_prepared: 'the code host did not answer for a repository' };
    const name = nameOf('workspace', [
      version,
      teamId,
      [row.executor_kind, row.executor_uid],
      row.environment_uid,
      setupContents(row),
      clonable.map(({ repository, url, credentialId, head }) => [repository, url, credentialId, head]),
      config.setup_commands ?? [],
      Object.entries(config.variables ?? {}).sort(([a], [b]) => (a < b ? -1 : 1)),
      ...(allowedHosts.length > 0 ? [allowedHosts] : []),
      ...(row.image === null ? [] : [{ image: row.image }]),
      ...(granted.setupSecrets.length > 0 ? [{ secrets: granted.setupSecrets }] : []),
    ]);
    return { prepared_workspace: { name } };
  };
  return {
    mirrorOf: (repository) => {
      const found = clonable.find((each) => each.repository === repository);
      if (found === undefined) return {};
      const { owner, repo, lfs, submodules, path, ...others } = repository;
      // A mirror has the latest commit of the default branch, with all files.
      const isUsual = Object.keys(others).length === 0;
      const mirror = nameOf('mirror', [version, teamId, found.url, found.credentialId]);
      return { head: found.head, ...(isUsual ? { mirror } : {}) };
    },
    prepared: preparedOf(),
  };
}

/**
 * Returns the revisions and authors of the texts that the setup executes. A workspace that was prepared with texts of other authors must
 * not be used, because these authors may have other rights.
 */
function setupContents({ config, contents }: TaskRow): unknown {
  const hasRunner = (runnerOf(config)?.setup_commands ?? []).length > 0;
  return contents
    .filter(({ kind }) => kind === 'environment' || (hasRunner && configuringKinds.includes(kind)))
    .map(({ kind, uid, revision, author, accepted }) => [kind, uid, revision, author?.kind, author?.uid, accepted]);
}

const isEmpty = (list: unknown): boolean =>
  list === undefined || list === null || (Array.isArray(list) && list.length === 0);
