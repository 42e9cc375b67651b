/** Finds the secrets that a run may get. `access/contents/run-rights.ts` decides about each of them. */

import { type SecretReference, SecretVariable } from '@runyard/contract/secrets/secrets';
import { plainMessage } from '@runyard/contract/wire/plain-message';
import type { Fault } from '../../platform/fault.ts';
import type { Vault } from '../../platform/secrets/vault.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import {
  boolean,
  bytes,
  defineStatement,
  json,
  type RowOf,
  text,
  uuid,
} from '../../platform/store/database/statement.ts';
import type { RunActor } from '../access/actor.ts';
import type { RunContent } from '../access/contents/content.ts';
import {
  decideRight,
  isForAgent,
  isInSandbox,
  principalsOf,
  type RightToSecret,
  type RunRights,
  type ServerSecretForm,
  type Withheld,
} from '../access/contents/run-rights.ts';
import { heldBy } from './held-by.ts';
import { purposeOfSecret } from './sealed-rows.ts';

/** Describes the run that needs secrets. */
export interface SecretUser {
  readonly teamId: string;
  /** The person or service account for whom the run works. */
  readonly actor: RunActor;
  /** Contents that the run executes; absent if the run executes no contents that other people wrote. */
  readonly contents?: readonly RunContent[];
  /** Rights of the parent run, of which a child run has a part. Absent: the run has no parent that started it. */
  readonly within?: Pick<RunRights, 'secrets'> | undefined;
}

/** A name of a secret, and the form in which the run gets it. */
interface NamedSecret {
  readonly name: string;
  readonly variable?: string | undefined;
  readonly as?: RightToSecret['as'] | undefined;
  readonly phase?: RightToSecret['phase'] | undefined;
  /** Path of the member that names the secret, for messages; absent: the path of the whole list is used. */
  readonly path?: string;
}

/** Secrets that a run and its environment name. */
export interface SecretNames {
  readonly ofRun: readonly SecretReference[];
  /** Secrets of the team that the environment names. The result leaves out those that the run may not have. */
  readonly ofEnvironment: readonly SecretReference[];
  /** Secrets that MCP servers of the run name; absent: there are none. */
  readonly ofServers?: readonly (NamedSecret & { readonly as: ServerSecretForm })[];
  /** Names of the secrets that the run's agent identity gives only to setup commands; absent: there are none. */
  readonly setupOnly?: readonly string[];
}

/** A secret value that a sandbox may get. */
export interface UsableSecret extends RightToSecret {
  readonly value: string;
}

/**
 * The reason why a secret that the run names cannot be used. `unknown`: there is no such secret; `forbidden`: the executor may not use the
 * secret; `setup_only`: an MCP server names a secret that the agent identity gives only to setup commands.
 */
export interface UnusableSecret {
  readonly kind: 'unknown' | 'forbidden' | 'setup_only' | 'unreadable';
  readonly name: string;
  readonly path: string;
}

/** Outcome of a search. `withheld`: the author of a content may not use a secret that the run names. */
export type UsableSecrets =
  | {
      readonly kind: 'ok';
      readonly secrets: readonly UsableSecret[];
      /** Secrets of the environment that the run does not get. */
      readonly withheld: readonly Withheld[];
    }
  | UnusableSecret
  | { readonly kind: 'withheld'; readonly withheld: Withheld; readonly path: string };

const row = {
  id: uuid,
  name: text(),
  is_personal: boolean,
  vault_key_id: text(),
  sealed_value: bytes,
  /** For each principal, in the order of the parameters: true if the principal may use the secret. */
  held: json<boolean[]>(),
};
const columns = `s.id, s.name, s.owner_uid IS NOT NULL AS is_personal, s.vault_key_id, s.sealed_value, ${heldBy('s', '$3', '$4')} AS held`;

/** SQL: $5 limits the secrets to those with these ids; NULL: it does not. */
const isAmong = '($5::uuid[] IS NULL OR s.id = ANY($5))';

/**
 * The personal secret of the executor ($3[1], $4[1]) has priority. The team's secret with the same name never replaces it, even if the
 * personal secret cannot be used.
 */
const readNamed = defineStatement({
  name: 'read_named_secrets',
  text: `
    SELECT DISTINCT ON (s.name) ${columns} FROM stored_secrets s
    WHERE s.team_id = $1 AND s.name = ANY($2::text[])
      AND (s.owner_uid IS NULL OR (($3::text[])[1] = 'user' AND s.owner_uid = ($4::text[])[1])) AND ${isAmong}
    ORDER BY s.name, s.owner_uid NULLS LAST`,
  row,
});

const readOfTeam = defineStatement({
  name: 'read_secrets_of_team_by_name',
  text: `SELECT ${columns} FROM stored_secrets s WHERE s.team_id = $1 AND s.owner_uid IS NULL AND s.name = ANY($2::text[]) AND ${isAmong}`,
  row,
});

const readById = defineStatement({
  name: 'read_secrets_by_id',
  text: `SELECT ${columns} FROM stored_secrets s WHERE s.team_id = $1 AND s.id = ANY($2::uuid[]) AND ${isAmong}`,
  row,
});

type SecretRow = RowOf<typeof readNamed>;

/** Compare only these members of a reference; other members are ignored. */
const named = ({ name, variable, as, phase }: SecretReference): NamedSecret => ({ name, variable, as, phase });
const isOfSetup = ({ phase }: NamedSecret): boolean => phase === 'setup';
const isOfAgent = ({ phase }: NamedSecret): boolean => phase === undefined;

const variableOf = ({ variable, name }: NamedSecret): string => variable ?? name;

/** Returns functions that read secrets and decide for each secret whether the run may get it. */
function readerFor(db: Queryable, { teamId, actor, contents = [] }: SecretUser) {
  const principals = principalsOf(actor, contents);
  const parameters = [principals.map(({ kind }) => kind), principals.map(({ uid }) => uid)];
  const decide = ({ held }: SecretRow) =>
    decideRight(actor, contents, (principal) => {
      const index = principals.findIndex(({ kind, uid }) => kind === principal.kind && uid === principal.uid);
      return held[index] === true;
    });
  const read = async (statement: typeof readNamed, keys: readonly string[], among?: readonly string[]) =>
    keys.length === 0 ? [] : await db.query(statement, [teamId, keys, ...parameters, among ?? null]);
  return { decide, read };
}

/** Returns whether the parent of a run has the secret, but only for its setup commands. */
function isOfParentsSetup(within: SecretUser['within'], wanted: string): boolean {
  const rights = within?.secrets.filter(({ name }) => name === wanted) ?? [];
  return rights.length > 0 && !rights.some(isForAgent) && rights.some(isOfSetup);
}

/**
 * Returns the secrets that the run gets, or the first secret in the run's own list that the run may not get. A variable in the run's
 * configuration replaces the same variable of the environment.
 */
export async function findUsableSecrets(
  db: Queryable,
  vault: Vault,
  user: SecretUser,
  { ofRun, ofEnvironment, ofServers = [], setupOnly = [] }: SecretNames,
): Promise<UsableSecrets> {
  const refused = ofServers.find(({ name }) => setupOnly.includes(name));
  if (refused) return { kind: 'setup_only', name: refused.name, path: refused.path ?? 'config.mcp_servers' };
  const { decide, read } = readerFor(db, user);
  const own = new Set(ofRun.map(variableOf));
  // A child run compares secrets by id: its parent may have the team's secret with the name of a personal secret.
  const idsIn = (isWanted: (right: RightToSecret) => boolean) =>
    user.within?.secrets.filter(isWanted).map(({ id }) => id);
  const [forAgent, inSandbox] = [idsIn(isForAgent), idsIn(isInSandbox)];
  const inHeaders = idsIn((right) => !isInSandbox(right));
  const ofRunNamed = ofRun.map(named);
  const isOnlyForSetup = (name: string) => setupOnly.includes(name) || isOfParentsSetup(user.within, name);
  const ofEnvironmentNamed = ofEnvironment
    .filter((reference) => !own.has(variableOf(reference)))
    .map(named)
    .map((each) => (isOnlyForSetup(each.name) ? { ...each, phase: 'setup' as const } : each));
  const sources: readonly {
    readonly path: string;
    readonly references: readonly NamedSecret[];
    readonly statement: typeof readNamed;
    readonly among: readonly string[] | undefined;
  }[] = [
    { path: 'config.secrets', references: ofRunNamed.filter(isOfAgent), statement: readNamed, among: forAgent },
    { path: 'config.secrets', references: ofRunNamed.filter(isOfSetup), statement: readNamed, among: inSandbox },
    {
      path: 'config.mcp_servers',
      references: ofServers.filter(isInSandbox),
      statement: readNamed,
      among: forAgent,
    },
    {
      path: 'config.mcp_servers',
      references: ofServers.filter((server) => !isInSandbox(server)),
      statement: readNamed,
      among: inHeaders,
    },
    {
      path: 'config.environment_id',
      references: ofEnvironmentNamed.filter(isOfAgent),
      statement: readOfTeam,
      among: forAgent,
    },
    {
      path: 'config.environment_id',
      references: ofEnvironmentNamed.filter(isOfSetup),
      statement: readOfTeam,
      among: inSandbox,
    },
  ];
  const secrets: UsableSecret[] = [];
  const withheld: Withheld[] = [];
  for (const { path: pathOfAll, references, statement, among } of sources) {
    const rows = await read(
      statement,
      references.map(({ name }) => name),
      among,
    );
    for (const reference of references) {
      const { name } = reference;
      const { path = pathOfAll } = reference;
      const found = rows.find((each) => each.name === name);
      if (!found && among && statement === readOfTeam) {
        withheld.push({ right: 'secret', name, isLackedByParent: true });
        continue;
      }
      if (!found) return { kind: 'unknown', name, path };
      const decision = decide(found);
      if (decision.kind !== 'held') {
        const lost: Withheld = {
          right: 'secret',
          name,
          ...(decision.kind === 'withheld' ? { content: decision.content } : {}),
        };
        if (statement === readOfTeam) withheld.push(lost);
        else
          return decision.kind === 'withheld'
            ? { kind: 'withheld', withheld: lost, path }
            : { kind: 'forbidden', name, path };
        continue;
      }
      if (!vault.keyIds.includes(found.vault_key_id)) return { kind: 'unreadable', name, path };
      secrets.push({ ...toRight(found, reference), value: open(vault, found) });
    }
  }
  return { kind: 'ok', secrets, withheld };
}

/** Returns those of the named secrets that the run may not use, without decrypting any secret. Unknown names are left out. */
export async function findWithheld(db: Queryable, user: SecretUser, names: SecretNames): Promise<readonly Withheld[]> {
  const { decide, read } = readerFor(db, user);
  const lost = async (statement: typeof readNamed, references: readonly NamedSecret[]) => {
    const rows = await read(
      statement,
      references.map(({ name }) => name),
    );
    return rows.flatMap((row): Withheld[] => {
      const decision = decide(row);
      return decision.kind === 'withheld' ? [{ right: 'secret', name: row.name, content: decision.content }] : [];
    });
  };
  return [
    ...(await lost(readNamed, [...names.ofRun.map(named), ...(names.ofServers ?? [])])),
    ...(await lost(readOfTeam, names.ofEnvironment.map(named))),
  ];
}

const toRight = ({ id, is_personal }: SecretRow, reference: NamedSecret): RightToSecret => ({
  id,
  name: reference.name,
  variable: variableOf(reference),
  as: reference.as ?? 'variable',
  ...(reference.phase === undefined ? {} : { phase: reference.phase }),
  ...(is_personal ? { personal: true } : {}),
});

const open = (vault: Vault, { id, sealed_value }: SecretRow): string => vault.open(purposeOfSecret(id), sealed_value);

/** Kinds of contents that a run may get after it was created. */
const laterContents: readonly RunContent['kind'][] = ['worker_pool', 'conversation'];

/**
 * Returns the present values of secrets that a run may use, or the first secret that the run may not use any more. After the run was
 * created, the secret may have been deleted, or its executor or an author may have left the team. Secrets that the owner of the run's
 * worker pool may not use, or an author whose text has run in the sandbox, are withheld, because they may have come after the run was
 * created.
 */
export async function readRights(
  db: Queryable,
  vault: Vault,
  user: SecretUser,
  rights: readonly RightToSecret[],
): Promise<Exclude<UsableSecrets, { kind: 'withheld' }>> {
  const { decide, read } = readerFor(db, user);
  const rows = await read(
    readById,
    rights.map(({ id }) => id),
  );
  const secrets: UsableSecret[] = [];
  const withheld: Withheld[] = [];
  for (const right of rights) {
    const { id, name } = right;
    const isOfServer = right.as === 'mcp_variable' || right.as === 'mcp_header';
    const unusable = { name, path: isOfServer ? 'config.mcp_servers' : 'config.secrets' };
    const found = rows.find((each) => each.id === id);
    if (!found) return { kind: 'unknown', ...unusable };
    const decision = decide(found);
    if (decision.kind === 'withheld' && laterContents.includes(decision.content.kind)) {
      withheld.push({ right: 'secret', name, content: decision.content });
      continue;
    }
    if (decision.kind !== 'held') return { kind: 'forbidden', ...unusable };
    if (!vault.keyIds.includes(found.vault_key_id)) return { kind: 'unreadable', ...unusable };
    secrets.push({ ...right, value: open(vault, found) });
  }
  return { kind: 'ok', secrets, withheld };
}

/** A secret of the team that can be decrypted. */
export interface TeamSecret {
  readonly id: string;
  readonly value: string;
}

/**
 * Returns a secret of the team for the service itself. `unreadable`: the secret was encrypted with another key. Returns null if
 * there is none.
 */
export async function findTeamSecret(
  db: Queryable,
  vault: Vault,
  teamId: string,
  name: string,
): Promise<TeamSecret | 'unreadable' | null> {
  const [found] = await db.query(readOfTeam, [teamId, [name], ['user'], [''], null]);
  if (!found) return null;
  return vault.keyIds.includes(found.vault_key_id) ? { id: found.id, value: open(vault, found) } : 'unreadable';
}

/** Returns those of `rights` that `actor` does not have. */
export async function findLacking(
  db: Queryable,
  { teamId, actor }: Pick<SecretUser, 'teamId' | 'actor'>,
  rights: readonly RightToSecret[],
): Promise<readonly RightToSecret[]> {
  const { decide, read } = readerFor(db, { teamId, actor });
  const rows = await read(
    readById,
    rights.map(({ id }) => id),
  );
  return rights.filter((right) => {
    const found = rows.find(({ id }) => id === right.id);
    return !found || decide(found).kind !== 'held';
  });
}

/** Returns a fault if two of the references use the same variable. */
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

/** Returns a sentence that says why a request cannot name the secret. */
export function describeUnusable({ kind, name, path }: UnusableSecret): string {
  const ofEnvironment = path === 'config.environment_id' ? ' of the environment' : '';
  switch (kind) {
    case 'unknown':
      return `there is no secret ${name}${ofEnvironment}. Set it with PUT /secrets/${name}; GET /secrets lists those that you may use`;
    case 'forbidden':
      return `the secret ${name} may not be used by this run. An administrator can name the service account in its "agents", or the secret in the agent identity`;
    case 'setup_only':
      return `the agent identity gives the secret ${name} only to setup commands, so no MCP server may name it. Leave it out, or remove its phase in the agent identity`;
    case 'unreadable':
      return `the secret ${name} was sealed with a key that this service does not have. Put the right secrets-key (or RUNYARD_SECRETS_KEY) back, or set the secret again`;
  }
}
