/** Chooses the credential with which a run may read a repository, and asks the code host which repositories the run can read. */
import type { Repository } from '@runyard/contract/environments/repositories';
import type { CodeHostCredentialKind } from '@runyard/contract/team/code-hosts';
import type { Vault } from '../../platform/secrets/vault.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import {
  boolean,
  bytes,
  defineStatement,
  nullable,
  type RowOf,
  text,
  uuid,
} from '../../platform/store/database/statement.ts';
import type { RunActor } from '../access/actor.ts';
import { askRepositories, type RepositoryAnswer, type RepositoryAtRef } from './ask-repositories.ts';
import type { ChosenCredential } from './credential.ts';
import { apiOf, type CodeHostApi, openInstallationTokens } from './installation-tokens.ts';
import { sealPurpose } from './records.ts';
import { codeHostUrl, hostOf } from './url.ts';

export interface CodeHosts {
  /** Chooses the credential with which a caller of the API, or the executor of a run, may read a repository. */
  credentialFor(user: CodeHostUser, repository: Repository): Promise<ChosenCredential>;
  /**
   * Asks the code host for repositories, with the credentials of this user. The answers are in the order of the repositories. The requests
   * take 10 s at most.
   */
  ask(user: CodeHostUser, repositories: readonly RepositoryAtRef[]): Promise<RepositoryAnswer[]>;
  /**
   * Returns those of the repositories that the person or service account cannot read: neither with its personal credentials, nor with those
   * of the team, nor without a credential. A repository counts as not readable if the code host does not answer.
   */
  findUnreadable(
    user: Pick<CodeHostUser, 'teamId' | 'actor'>,
    repositories: readonly Repository[],
  ): Promise<Repository[]>;
  /** Returns the secret parts of the credentials that the user has for the repositories. */
  secretsFor(user: CodeHostUser, repositories: readonly Repository[]): Promise<string[]>;
  /** Returns the host on which the repositories of this owner are. */
  hostOf(repository: Repository): string;
  /** Returns the clone URL of a repository, without a credential. */
  urlOf(repository: Repository): URL;
  apiOf(repository: Repository): CodeHostApi;
}

/** A person or an agent identity that acts in a team. */
export interface CodeHostUser {
  readonly teamId: string;
  readonly actor: RunActor;
  /** Kinds of credentials that are withheld from a run of this user, each with the reason, as a whole sentence. Absent: none. */
  readonly without?: { readonly personal?: string; readonly team?: string };
}

/**
 * Chooses a credential for a host and an owner in lower case. A personal credential has priority over a credential of the team, and a
 * credential for this owner has priority over a credential for all owners. A personal credential is used only for the person to whom it
 * belongs: $2 is the uid of this person, or NULL. $5: credentials of the team may be used.
 */
const choose = defineStatement({
  name: 'choose_code_host_credential',
  text: `
    SELECT c.id, c.kind, c.user_id IS NOT NULL AS is_personal, c.username, c.app_id, c.installation_id, c.vault_key_id, c.sealed_secret
    FROM code_host_credentials c LEFT JOIN users u ON u.id = c.user_id
    WHERE c.team_id = $1 AND c.host = $3 AND (c.owner IS NULL OR c.owner = $4) AND (c.user_id IS NULL AND $5 OR u.uid = $2)
    ORDER BY c.user_id IS NULL, c.owner IS NULL LIMIT 1`,
  row: {
    id: uuid,
    kind: text<CodeHostCredentialKind>(),
    is_personal: boolean,
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
  /** RUNYARD_CODE_HOST_API_URL */
  readonly apiUrl: string | undefined;
  /** Returns the present Unix time in milliseconds. */
  readonly now?: () => number;
}

/** Creates the functions of `CodeHosts`. Opens no connection. */
export function openCodeHosts({ db, vault, template, apiUrl, now = Date.now }: CodeHostsDeps): CodeHosts {
  const tokens = openInstallationTokens(now, apiUrl);
  const urlOf = (repository: Repository) => codeHostUrl(template, repository);

  const open = (row: RowOf<typeof choose>): string => vault.open(sealPurpose(row.id), row.sealed_secret);

  const rowFor = async ({ teamId, actor, without = {} }: CodeHostUser, repository: Repository) => {
    const person = actor.kind === 'user' && without.personal === undefined ? actor.uid : null;
    const host = hostOf(urlOf(repository));
    const owner = repository.owner.toLowerCase();
    const [row] = await db.query(choose, [teamId, person, host, owner, without.team === undefined]);
    return row;
  };

  /** Returns why the user cannot use the credential that is stored for the repository; undefined if none is stored. */
  const whyWithheld = async (user: CodeHostUser, repository: Repository): Promise<string | undefined> => {
    const { without, ...others } = user;
    const stored = without && (await rowFor(others, repository));
    return stored && (stored.is_personal ? without.personal : without.team);
  };

  async function secretsFor(user: CodeHostUser, repositories: readonly Repository[]): Promise<string[]> {
    const byOwner = new Map(repositories.map((repository) => [repository.owner.toLowerCase(), repository]));
    const secrets: string[] = [];
    for (const repository of byOwner.values()) {
      const row = await rowFor(user, repository);
      if (row && vault.keyIds.includes(row.vault_key_id)) secrets.push(open(row));
    }
    return secrets;
  }

  async function chosenOf(row: RowOf<typeof choose> | undefined, repository: Repository): Promise<ChosenCredential> {
    if (!row) return { kind: 'none' };
    if (!vault.keyIds.includes(row.vault_key_id)) {
      const message = `The credential for ${repository.owner}/${repository.repo} was sealed with another secrets key. Start the service with that key, or delete the credential and store it again.`;
      return { kind: 'unusable', message };
    }
    const owned = row.is_personal ? { isPersonal: true as const } : {};
    if (row.kind === 'token') {
      const credential = { username: row.username ?? '', password: open(row) };
      return { kind: 'credential', id: row.id, ...owned, credential, refused: () => {} };
    }
    const app = { id: row.id, appId: row.app_id ?? '', installationId: row.installation_id };
    const token = await tokens.tokenFor(app, () => open(row), urlOf(repository), repository);
    return token.kind === 'credential' ? { ...token, ...owned } : token;
  }

  const credentialFor = async (user: CodeHostUser, repository: Repository): Promise<ChosenCredential> => {
    const chosen = await chosenOf(await rowFor(user, repository), repository);
    const withheld = chosen.kind === 'none' ? await whyWithheld(user, repository) : undefined;
    return withheld === undefined ? chosen : { kind: 'none', withheld };
  };

  const ask = (user: CodeHostUser, repositories: readonly RepositoryAtRef[]) =>
    askRepositories(repositories, { urlOf, credentialFor: (repository) => credentialFor(user, repository) });

  return {
    credentialFor,
    secretsFor,
    findUnreadable: async (user, repositories) => {
      let left = [...repositories];
      for (const without of [{}, { personal: '' }, { personal: '', team: '' }]) {
        const answers = left.length === 0 ? [] : await ask({ ...user, without }, left);
        left = answers.flatMap((answer) => (answer.kind === 'readable' ? [] : [answer.repository]));
      }
      return left;
    },
    ask,
    hostOf: (repository) => hostOf(urlOf(repository)),
    urlOf,
    apiOf: (repository) => apiOf(urlOf(repository), apiUrl),
  };
}

const readKinds = defineStatement({
  name: 'read_kinds_of_code_host_credentials',
  text: `
    SELECT coalesce(bool_or(c.user_id IS NULL), false) AS of_team, coalesce(bool_or(u.uid = $2), false) AS of_person
    FROM code_host_credentials c LEFT JOIN users u ON u.id = c.user_id WHERE c.team_id = $1`,
  row: { of_team: boolean, of_person: boolean },
});

/** Returns whether the team has credentials, and whether the principal has personal credentials in the team. */
export async function readStoredKinds(
  db: Queryable,
  { teamId, actor }: Pick<CodeHostUser, 'teamId' | 'actor'>,
): Promise<{ readonly team: boolean; readonly personal: boolean }> {
  const [row] = await db.query(readKinds, [teamId, actor.kind === 'user' ? actor.uid : null]);
  return { team: row?.of_team ?? false, personal: row?.of_person ?? false };
}
