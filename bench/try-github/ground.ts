/** Starts a service with a worker that uses the App, and gives its team the installation and the person's account. */
import type { GithubApp } from '@runyard/contract/team/github';
import { openVault } from '../../packages/service/src/platform/secrets/vault.ts';
import { withDatabase } from '../../packages/service/src/platform/store/transfer/data-folder.ts';
import type { Author } from '../../packages/service/src/team/access/audit/record.ts';
import { type GithubAnswer, openGithubApi } from '../../packages/service/src/team/code-hosts/github-api.ts';
import { proveInstallation } from '../../packages/service/src/triggers/github/authorize.ts';
import { githubHostOf } from '../../packages/service/src/triggers/github/hosts.ts';
import { claimInstallation } from '../../packages/service/src/triggers/github/installations.ts';
import { linkPerson } from '../../packages/service/src/triggers/github/people.ts';
import { type System, startSystem } from '../../test/support/system.ts';

export interface TrySettings {
  /** Origin of GitHub. */
  readonly url: string;
  readonly appId: string;
  readonly privateKey: string;
  /** `owner/name`. */
  readonly repository: string;
  /** Token of the person. */
  readonly token: string;
  /** Default: the embedded database. */
  readonly databaseUrl?: string;
}

export interface CheckRun {
  readonly external_id: string | null;
  readonly html_url: string | null;
  readonly conclusion: string | null;
}

export interface Ground {
  readonly system: System;
  readonly api: string;
  /** Name of the App, without `@`. */
  readonly slug: string;
  /** The default branch of the repository. */
  readonly branch: string;
  readonly login: string;
  /** Returns the check runs of the App on a commit; null: the App may not write any. */
  readCheckRuns(sha: string): Promise<readonly CheckRun[] | null>;
}

/** The runs print this text and the commit on which they work. */
export const worksOn = 'works on';
const prompt = `\`\`\`sh\necho "${worksOn} $(git rev-parse HEAD)"\n\`\`\``;

function bodyOf<T>(what: string, answer: GithubAnswer): T {
  if (answer.kind === 'ok') return answer.body as T;
  const why = answer.kind === 'limited' ? 'a limit of GitHub is used up' : answer.message;
  throw new Error(`${what}: ${why}`);
}

interface Repository {
  readonly id: number;
  /** The name with the letters that events have. */
  readonly full_name: string;
  readonly default_branch: string;
}

interface Account {
  readonly id: number;
  readonly login: string;
}

/** Asks GitHub who the person is and where the App is installed, before anything starts. */
async function readGithub({ url, appId, privateKey, repository, token }: TrySettings) {
  const template = `${url}/{owner}/{repo}.git`;
  const host = githubHostOf({ RUNYARD_CODE_HOST_URL: template });
  if (!host) throw new Error(`${url} is no host of GitHub`);
  const api = openGithubApi();
  const key = { uid: 'try', appId, host, privateKey: () => privateKey };
  const read = (path: string) => api.asPerson(host, token, { method: 'GET', path });
  const person = bodyOf<Account>('GITHUB_TOKEN', await read('/user'));
  const of = bodyOf<Repository>(`GITHUB_TOKEN does not read ${repository}`, await read(`/repos/${repository}`));
  const installation = bodyOf<{ readonly id: number; readonly permissions: Readonly<Record<string, string>> }>(
    `The App is not installed in ${repository}, or its key is wrong`,
    await api.asApp(key, { method: 'GET', path: `/repos/${repository}/installation` }),
  );
  const proved = await proveInstallation(api, key, { token, account: person }, String(installation.id));
  if (typeof proved === 'string')
    throw new Error(
      `${person.login} cannot claim the installation (${proved}): the token must be of its account, or of an owner of its organization who may read memberships`,
    );
  const scope = {
    installationId: String(installation.id),
    repositoryId: of.id,
    permissions: { checks: 'read' },
  } as const;
  const readCheckRuns = async (sha: string) => {
    if (installation.permissions.checks !== 'write') return null;
    const path = `/repos/${repository}/commits/${sha}/check-runs?app_id=${appId}`;
    const answer = await api.asInstallation(key, scope, { method: 'GET', path });
    return bodyOf<{ check_runs: CheckRun[] }>('The check runs of the commit', answer).check_runs;
  };
  return { template, host, person, installation, account: proved, repository: of, readCheckRuns };
}

type OnGithub = Awaited<ReturnType<typeof readGithub>>;

/**
 * Claims the installation and links the account without a browser. `GET /user` with the person's own token has shown the number of the
 * account, as at the end of the authorization in a browser, and the same function has checked who administers the installation. Only the
 * redirects of the authorization are not tried.
 */
async function join(
  { dataDir }: System,
  { databaseUrl }: TrySettings,
  { person, installation, account }: OnGithub,
  { appUid, factoryUid }: { readonly appUid: string; readonly factoryUid: string },
): Promise<void> {
  const vault = await openVault(dataDir, undefined);
  await withDatabase({ dataFolder: dataDir, ...(databaseUrl ? { databaseUrl } : {}) }, async (db) => {
    const [owner] = await db.query<{ team_id: string; uid: string }>(
      `SELECT m.team_id, u.uid FROM team_members m JOIN users u ON u.id = m.user_id WHERE m.role = 'owner'`,
    );
    if (!owner) throw new Error('the new installation has no owner');
    const by: Author = { teamId: owner.team_id, creator: { kind: 'user', uid: owner.uid }, keyId: null, from: null };
    const of = { appUid, installationId: String(installation.id), account, factoryUid };
    await db.transaction(async (tx) => {
      const claimed = await claimInstallation(tx, vault, by, of);
      if (typeof claimed === 'string') throw new Error(`the installation cannot be claimed: ${claimed}`);
      await linkPerson(tx, by, appUid, person);
      // The service reads five minutes of the log before this time. Leave out what an earlier try has written.
      await tx.query(`UPDATE github_apps SET polled_to = clock_timestamp() + interval '290 seconds'`);
    });
  });
}

/** Starts everything. The caller stops the system. */
export async function openGround(settings: TrySettings): Promise<Ground> {
  const github = await readGithub(settings);
  const { appId, privateKey, databaseUrl } = settings;
  const { full_name: repository, default_branch: branch } = github.repository;
  const env = { RUNYARD_CODE_HOST_URL: github.template, RUNYARD_DEFAULT_MODEL: 'runbook' };
  const system = await startSystem({ env, ...(databaseUrl ? { databaseUrl } : {}) });
  try {
    const post = <T>(path: string, body: object, status = 201) => system.call<T>('POST', path, body, status);
    const stored = { scope: 'team', kind: 'github_app', app_id: appId, private_key: privateKey };
    const { id: credential_id } = await post<{ id: string }>('/code-hosts', stored);
    // Events come from GitHub's log and nobody authorizes the App, so GitHub need not know these secrets.
    const unused = { client_id: 'unused', client_secret: crypto.randomUUID(), webhook_secret: crypto.randomUUID() };
    const app = await post<GithubApp>('/github/apps', { credential_id, ...unused });
    const { uid: factoryUid } = await post<{ uid: string }>('/factory', { name: 'Try' });
    const [owner, repo = ''] = repository.split('/');
    const environment = { name: 'Try', github_repos: [{ owner, repo }], working_directory: repo };
    const { uid } = await post<{ uid: string }>('/agent/environments', { config: environment });
    await join(system, settings, github, { appUid: app.uid, factoryUid });
    const slug = app.handle.slice(1);
    const on = (event: string) => ({
      provider: 'github',
      event,
      filter: { mentioned: [slug], repos: [repository] },
    });
    await post(`/factory/${factoryUid}/automations`, {
      name: 'Try',
      prompt,
      config: { model_id: 'runbook', environment_id: uid },
      triggers: [on('issue_mentioned'), on('pull_request_mentioned')],
    });
    const { readCheckRuns, host, person } = github;
    return { system, api: host.api, slug, branch, login: person.login, readCheckRuns };
  } catch (error) {
    await system.stop();
    throw error;
  }
}
