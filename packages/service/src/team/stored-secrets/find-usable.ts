/** Decides which secrets a run may have. No other code decides that. */
import { plainMessage } from '@runyard/contract/plain-message';
import { type SecretReference, SecretVariable } from '@runyard/contract/secrets';
import type { Fault } from '../../platform/fault.ts';
import type { Vault } from '../../platform/secrets/vault.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import { boolean, bytes, defineStatement, text, uuid } from '../../platform/store/database/statement.ts';
import type { RunActor } from '../access/actor.ts';
import { purposeOfSecret } from './seal-purpose.ts';

/** The run that needs secrets. */
export interface SecretUser {
  readonly teamId: string;
  /** The person or service account that the run works for. */
  readonly actor: RunActor;
}

/** Secrets that a run and its environment name. */
export interface SecretNames {
  readonly ofRun: readonly SecretReference[];
  /** Granted by the environment: secrets of the team, whoever the run works for. */
  readonly ofEnvironment: readonly SecretReference[];
}

/** A value that a sandbox may have. */
export interface UsableSecret {
  readonly id: string;
  readonly name: string;
  readonly variable: string;
  readonly as: 'variable' | 'file';
  readonly value: string;
}

/** Outcome of a search. `unknown`: there is no such secret; `forbidden`: it exists, but not for this run; both with the name. */
export type UsableSecrets =
  | { readonly kind: 'ok'; readonly secrets: readonly UsableSecret[] }
  | { readonly kind: 'unknown' | 'forbidden' | 'unreadable'; readonly name: string; readonly path: string };

/**
 * The personal secret of a name comes before the team's. People use their personal secrets and the team's while they are members;
 * service accounts use those of the team that name them, and agent identities also those that the identity names.
 */
const readNamed = defineStatement({
  name: 'read_named_secrets',
  text: `
    SELECT DISTINCT ON (s.name) s.id, s.name, s.vault_key_id, s.sealed_value,
      CASE WHEN $3 = 'user' THEN EXISTS (
          SELECT FROM team_members m JOIN users u ON u.id = m.user_id WHERE m.team_id = s.team_id AND u.uid = $4)
        ELSE $4 = ANY(s.agent_uids) OR EXISTS (
          SELECT FROM agent_identities i WHERE i.team_id = s.team_id AND i.uid = $4 AND s.name = ANY(i.secrets)) END AS may_use
    FROM stored_secrets s
    WHERE s.team_id = $1 AND s.name = ANY($2::text[]) AND (s.owner_uid IS NULL OR ($3 = 'user' AND s.owner_uid = $4))
    ORDER BY s.name, s.owner_uid NULLS LAST`,
  row: { id: uuid, name: text(), vault_key_id: text(), sealed_value: bytes, may_use: boolean },
});

const readOfTeam = defineStatement({
  name: 'read_secrets_of_team_by_name',
  text: `
    SELECT id, name, vault_key_id, sealed_value, true AS may_use FROM stored_secrets
    WHERE team_id = $1 AND owner_uid IS NULL AND name = ANY($2::text[])`,
  row: { id: uuid, name: text(), vault_key_id: text(), sealed_value: bytes, may_use: boolean },
});

const variableOf = ({ variable, name }: SecretReference): string => variable ?? name;

/**
 * Returns the secrets that the run gets, or the first name that it may not have. A variable that the run names itself replaces the
 * same one of the environment.
 */
export async function findUsableSecrets(
  db: Queryable,
  vault: Vault,
  { teamId, actor }: SecretUser,
  { ofRun, ofEnvironment }: SecretNames,
): Promise<UsableSecrets> {
  const own = new Set(ofRun.map(variableOf));
  const inherited = ofEnvironment.filter((reference) => !own.has(variableOf(reference)));
  const sources = [
    { path: 'config.secrets', names: ofRun, statement: readNamed, more: [actor.kind, actor.uid] },
    { path: 'config.environment_id', names: inherited, statement: readOfTeam, more: [] },
  ];
  const secrets: UsableSecret[] = [];
  for (const { path, names, statement, more } of sources) {
    if (names.length === 0) continue;
    const rows = await db.query(statement, [teamId, names.map(({ name }) => name), ...more]);
    const byName = new Map(rows.map((row) => [row.name, row]));
    for (const reference of names) {
      const { name } = reference;
      const found = byName.get(name);
      if (!found) return { kind: 'unknown', name, path };
      if (!found.may_use) return { kind: 'forbidden', name, path };
      if (!vault.keyIds.includes(found.vault_key_id)) return { kind: 'unreadable', name, path };
      const value = vault.open(purposeOfSecret(found.id), found.sealed_value);
      secrets.push({ id: found.id, name, variable: variableOf(reference), as: reference.as ?? 'variable', value });
    }
  }
  return { kind: 'ok', secrets };
}

/** Returns the fault of the references themselves: two of them cannot be in one variable. */
export function faultsOfReferences(references: readonly SecretReference[]): Fault[] {
  const taken = new Set<string>();
  return references.flatMap((reference, index) => {
    const variable = variableOf(reference);
    const path = `config.secrets.${index}.${reference.variable === undefined ? 'name' : 'variable'}`;
    if (taken.has(variable)) return [{ path, message: `two secrets are in the variable ${variable}` }];
    taken.add(variable);
    const checked = SecretVariable.safeParse(variable, { error: plainMessage });
    return checked.success ? [] : [{ path, message: checked.error.issues[0]?.message ?? 'is no variable' }];
  });
}

/** Returns why a request cannot name the secret, as a sentence. */
export function describeUnusable({ kind, name, path }: Exclude<UsableSecrets, { kind: 'ok' }>): string {
  const ofEnvironment = path === 'config.environment_id' ? ' of the environment' : '';
  switch (kind) {
    case 'unknown':
      return `there is no secret ${name}${ofEnvironment}. Set it with PUT /secrets/${name}; GET /secrets lists those that you may use`;
    case 'forbidden':
      return `the secret ${name} may not be used by this run. An administrator can name the service account in its "agents", or the secret in the agent identity`;
    case 'unreadable':
      return `the secret ${name} was sealed with a key that this service does not have. Put the right secrets-key (or RUNYARD_SECRETS_KEY) back, or set the secret again`;
  }
}
