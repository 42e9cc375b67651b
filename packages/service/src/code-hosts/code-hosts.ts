/** Chooses the credential of a repository for a run, and asks the code host what the run can reach. */
import type { CodeHostCredentialKind } from '@runyard/contract/code-hosts';
import type { Repository } from '@runyard/contract/environments';
import type { Vault } from '../secrets/vault.ts';
import type { Queryable } from '../store/database/database.ts';
import { bytes, defineStatement, nullable, type RowOf, text, uuid } from '../store/database/statement.ts';
import { askRepositories, type RepositoryAnswer } from './ask-repositories.ts';
import type { ChosenCredential } from './credential.ts';
import { openInstallationTokens } from './installation-tokens.ts';
import { sealPurpose } from './records.ts';
import { codeHostUrl, hostOf } from './url.ts';

export interface CodeHosts {
  /** Chooses the credential with which the run of an execution reaches a repository. */
  credentialFor(executionId: string, repository: Repository): Promise<ChosenCredential>;
  /** Asks the code host for repositories as the run of an execution would. The answers are in their order. It takes 10 s at most. */
  ask(executionId: string, repositories: readonly Repository[]): Promise<RepositoryAnswer[]>;
  /** Returns the secret parts of the credentials with which the run of an execution reaches the repositories. */
  secretsFor(executionId: string, repositories: readonly Repository[]): Promise<string[]>;
  /** Returns the host that repositories of this owner are on. */
  hostOf(repository: Repository): string;
}

/**
 * A personal credential comes before one of the team, and one for the owner before one for every owner. A personal one fits only
 * runs that execute as its person.
 */
const choose = defineStatement({
  name: 'choose_code_host_credential',
  text: `
    SELECT c.id, c.kind, c.username, c.app_id, c.installation_id, c.vault_key_id, c.sealed_secret
    FROM executions e JOIN runs r ON r.id = e.run_id
      JOIN code_host_credentials c ON c.team_id = r.team_id AND c.host = $2 AND (c.owner IS NULL OR c.owner = $3)
      LEFT JOIN users u ON u.id = c.user_id
    WHERE e.id = $1 AND (c.user_id IS NULL OR (r.executor_kind = 'user' AND r.executor_uid = u.uid))
    ORDER BY c.user_id IS NULL, c.owner IS NULL LIMIT 1`,
  row: {
    id: uuid,
    kind: text<CodeHostCredentialKind>(),
    username: nullable(text()),
    app_id: nullable(text()),
    installation_id: nullable(text()),
    vault_key_id: text(),
    sealed_secret: bytes,
  },
});

interface CodeHostsDeps {
  readonly db: Queryable;
  readonly vault: Vault;
  /** RUNYARD_CODE_HOST_URL */
  readonly template: string;
  /** Unix time in milliseconds. */
  readonly now?: () => number;
}

/** Opens no connection and nothing that must be closed. */
export function openCodeHosts({ db, vault, template, now = Date.now }: CodeHostsDeps): CodeHosts {
  const tokens = openInstallationTokens(now);
  const urlOf = (repository: Repository) => codeHostUrl(template, repository);

  const open = (row: RowOf<typeof choose>): string => vault.open(sealPurpose(row.id), row.sealed_secret);

  async function rowFor(executionId: string, repository: Repository): Promise<RowOf<typeof choose> | undefined> {
    const [row] = await db.query(choose, [executionId, hostOf(urlOf(repository)), repository.owner.toLowerCase()]);
    return row;
  }

  async function secretsFor(executionId: string, repositories: readonly Repository[]): Promise<string[]> {
    const byOwner = new Map(repositories.map((repository) => [repository.owner.toLowerCase(), repository]));
    const secrets: string[] = [];
    for (const repository of byOwner.values()) {
      const row = await rowFor(executionId, repository);
      if (row && vault.keyIds.includes(row.vault_key_id)) secrets.push(open(row));
    }
    return secrets;
  }

  async function credentialFor(executionId: string, repository: Repository): Promise<ChosenCredential> {
    const url = urlOf(repository);
    const row = await rowFor(executionId, repository);
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
    return await tokens.tokenFor(app, () => open(row), url, repository);
  }

  return {
    credentialFor,
    secretsFor,
    ask: (executionId, repositories) =>
      askRepositories(repositories, { urlOf, credentialFor: (repository) => credentialFor(executionId, repository) }),
    hostOf: (repository) => hostOf(urlOf(repository)),
  };
}
