/** Chooses the credential of a repository for a run, and asks the code host which repositories the run can reach. */
import type { CodeHostCredentialKind } from '@runyard/contract/code-hosts';
import type { Repository } from '@runyard/contract/environments';
import type { Vault } from '../../platform/secrets/vault.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import { bytes, defineStatement, nullable, type RowOf, text, uuid } from '../../platform/store/database/statement.ts';
import type { RunActor } from '../access/actor.ts';
import { apiOf, type CodeHostApi } from './api.ts';
import { askRepositories, type RepositoryAnswer } from './ask-repositories.ts';
import type { ChosenCredential } from './credential.ts';
import { openInstallationTokens } from './installation-tokens.ts';
import { sealPurpose } from './records.ts';
import { codeHostUrl, hostOf } from './url.ts';

export interface CodeHosts {
  /** Chooses the credential with which the run of an execution reaches a repository. */
  credentialFor(executionId: string, repository: Repository): Promise<ChosenCredential>;
  /**
   * Chooses the credential with which a caller of the API reaches a repository: the same as for a run of the caller.
   */
  credentialForCaller(caller: CodeHostCaller, repository: Repository): Promise<ChosenCredential>;
  /** Asks the code host for repositories as the run of an execution would. The answers are in their order. It takes 10 s at most. */
  ask(executionId: string, repositories: readonly Repository[]): Promise<RepositoryAnswer[]>;
  /** Returns the secret parts of the credentials with which the run of an execution reaches the repositories. */
  secretsFor(executionId: string, repositories: readonly Repository[]): Promise<string[]>;
  /** Returns the host that repositories of this owner are on. */
  hostOf(repository: Repository): string;
  /** Returns the clone URL, without a credential. */
  urlOf(repository: Repository): URL;
  /** Returns the API of the host of a repository. */
  apiOf(repository: Repository): CodeHostApi;
}

export interface CodeHostCaller {
  readonly teamId: string;
  readonly creator: RunActor;
}

const row = {
  id: uuid,
  kind: text<CodeHostCredentialKind>(),
  username: nullable(text()),
  app_id: nullable(text()),
  installation_id: nullable(text()),
  vault_key_id: text(),
  sealed_secret: bytes,
};

/**
 * SQL: chooses a credential for a host and a lower-case owner. A personal credential comes before one of the team, and
 * one for the owner before one for every owner. A personal credential is used only if the run executes as its person:
 * `person` is the uid of a person, or NULL.
 */
const chosen = (teamId: string, person: string, host: string, owner: string): string => `
  SELECT c.id, c.kind, c.username, c.app_id, c.installation_id, c.vault_key_id, c.sealed_secret
  FROM code_host_credentials c LEFT JOIN users u ON u.id = c.user_id
  WHERE c.team_id = ${teamId} AND c.host = ${host} AND (c.owner IS NULL OR c.owner = ${owner})
    AND (c.user_id IS NULL OR u.uid = ${person})
  ORDER BY c.user_id IS NULL, c.owner IS NULL LIMIT 1`;

const chooseForRun = defineStatement({
  name: 'choose_code_host_credential',
  text: `
    SELECT c.* FROM executions e JOIN runs r ON r.id = e.run_id
      CROSS JOIN LATERAL (${chosen('r.team_id', "CASE WHEN r.executor_kind = 'user' THEN r.executor_uid END", '$2', '$3')}) c
    WHERE e.id = $1`,
  row,
});

const chooseForCaller = defineStatement({
  name: 'choose_code_host_credential_of_caller',
  text: chosen('$1', '$2', '$3', '$4'),
  row,
});

interface CodeHostsDeps {
  readonly db: Queryable;
  readonly vault: Vault;
  /** RUNYARD_CODE_HOST_URL */
  readonly template: string;
  /** RUNYARD_CODE_HOST_API_URL */
  readonly apiUrl: string | undefined;
  /** Unix time in milliseconds. */
  readonly now?: () => number;
}

/** Creates the functions without opening a connection. */
export function openCodeHosts({ db, vault, template, apiUrl, now = Date.now }: CodeHostsDeps): CodeHosts {
  const tokens = openInstallationTokens(now, apiUrl);
  const urlOf = (repository: Repository) => codeHostUrl(template, repository);

  const open = (row: RowOf<typeof chooseForRun>): string => vault.open(sealPurpose(row.id), row.sealed_secret);

  const rowFor = async (executionId: string, repository: Repository) => {
    const [row] = await db.query(chooseForRun, [
      executionId,
      hostOf(urlOf(repository)),
      repository.owner.toLowerCase(),
    ]);
    return row;
  };

  async function secretsFor(executionId: string, repositories: readonly Repository[]): Promise<string[]> {
    const byOwner = new Map(repositories.map((repository) => [repository.owner.toLowerCase(), repository]));
    const secrets: string[] = [];
    for (const repository of byOwner.values()) {
      const row = await rowFor(executionId, repository);
      if (row && vault.keyIds.includes(row.vault_key_id)) secrets.push(open(row));
    }
    return secrets;
  }

  async function chosenOf(
    row: RowOf<typeof chooseForRun> | undefined,
    repository: Repository,
  ): Promise<ChosenCredential> {
    if (!row) return { kind: 'none' };
    if (!vault.keyIds.includes(row.vault_key_id)) {
      const message = `The credential for ${repository.owner}/${repository.repo} was sealed with another secrets key. Start the service with that key, or delete the credential and store it again.`;
      return { kind: 'unusable', message };
    }
    if (row.kind === 'token') {
      const credential = { username: row.username ?? '', password: open(row) };
      return { kind: 'credential', id: row.id, credential, refused: () => {} };
    }
    const app = { id: row.id, appId: row.app_id ?? '', installationId: row.installation_id };
    return await tokens.tokenFor(app, () => open(row), urlOf(repository), repository);
  }

  const credentialFor = async (executionId: string, repository: Repository) =>
    await chosenOf(await rowFor(executionId, repository), repository);

  return {
    credentialFor,
    credentialForCaller: async ({ teamId, creator }, repository) => {
      const person = creator.kind === 'user' ? creator.uid : null;
      const host = hostOf(urlOf(repository));
      const [row] = await db.query(chooseForCaller, [teamId, person, host, repository.owner.toLowerCase()]);
      return await chosenOf(row, repository);
    },
    secretsFor,
    ask: (executionId, repositories) =>
      askRepositories(repositories, { urlOf, credentialFor: (repository) => credentialFor(executionId, repository) }),
    hostOf: (repository) => hostOf(urlOf(repository)),
    urlOf,
    apiOf: (repository) => apiOf(urlOf(repository), apiUrl),
  };
}
