/** Signs in a person whom an identity provider has confirmed. Creates the person at the first sign-in, and applies the rules. */
import { hash, randomUUIDv7 } from 'node:crypto';
import { signOnMinutes } from '@runyard/contract/team/sign-on';
import { isAtLeast, type Role } from '@runyard/contract/wire/access';
import type { Logger } from 'pino';
import type { Vault } from '../../../platform/secrets/vault.ts';
import type { RequestOrigin } from '../../../platform/serving/served-route.ts';
import type { Database, Queryable } from '../../../platform/store/database/database.ts';
import { boolean, defineStatement, text, uuid } from '../../../platform/store/database/statement.ts';
import { createSignedOnSession, type NewSession } from '../key-management/browser-sessions.ts';
import { type AcceptRefusal, acceptSignedOn, insertUser, NotAccepted } from '../people/accept.ts';
import { applyRoles } from '../people/by-rules.ts';
import { newUid } from '../teams/uid.ts';
import { type Attempt, checksOf } from './attempt.ts';
import type { ProvidedPerson, Provider } from './provider.ts';
import type { SignOn } from './sign-on.ts';
import type { TeamRules } from './sign-on-file.ts';

/** Inserts nothing if the row exists, so an answer of a provider can be used for only one sign-in. */
const insertUse = defineStatement({
  name: 'insert_sign_on_use',
  text: `
    INSERT INTO sign_on_uses (hash, expires_at) VALUES ($1, now() + interval '${signOnMinutes} minutes')
    ON CONFLICT DO NOTHING RETURNING hash::text AS hash`,
  row: { hash: text() },
});

/** Because of this lock, two concurrent first sign-ins of a person are handled one after the other. */
const lockIdentity = defineStatement({
  name: 'lock_sign_on_identity',
  text: `SELECT pg_advisory_xact_lock(hashtextextended('sign-on of ' || $1 || ' ' || $2, 0))`,
  row: {},
});

const readIdentity = defineStatement({
  name: 'read_sign_on_identity',
  text: `
    SELECT i.id, u.id AS user_id, u.uid FROM sign_on_identities i JOIN users u ON u.id = i.user_id
    WHERE i.issuer = $1 AND i.subject = $2`,
  row: { id: uuid, user_id: uuid, uid: text() },
});

const insertIdentity = defineStatement({
  name: 'insert_sign_on_identity',
  text: `
    INSERT INTO sign_on_identities (id, issuer, subject, user_id, vault_key_id, confirmed_until) VALUES ($1, $2, $3, $4, '', now())`,
  row: {},
});

const renameUser = defineStatement({
  name: 'rename_signed_on_user',
  text: `
    UPDATE users SET display_name = $2, email = $3
    WHERE id = $1 AND (display_name, email) IS DISTINCT FROM ($2, $3)`,
  row: {},
});

/** If the provider sent no new refresh token, the earlier token stays. */
const confirm = defineStatement({
  name: 'confirm_sign_on_identity',
  text: `
    UPDATE sign_on_identities SET refresh_token = coalesce($2, refresh_token), token_sent = false,
      vault_key_id = CASE WHEN $2::bytea IS NULL THEN vault_key_id ELSE $3 END,
      confirmed_at = now(), confirmed_until = now() + $4 * interval '1 hour',
      next_check_at = CASE WHEN coalesce($2, refresh_token) IS NULL THEN now() + $4 * interval '1 hour'
        ELSE now() + $5 * interval '1 minute' END
    WHERE id = $1`,
  row: {},
});

/** The provider answered, but not about the groups: the time limit of the person stays. */
const keepUnconfirmed = defineStatement({
  name: 'keep_sign_on_identity_unconfirmed',
  text: `
    UPDATE sign_on_identities SET refresh_token = coalesce($2, refresh_token), token_sent = false,
      vault_key_id = CASE WHEN $2::bytea IS NULL THEN vault_key_id ELSE $3 END,
      next_check_at = least(now() + $4 * interval '1 minute', greatest(confirmed_until, now() + interval '1 minute'))
    WHERE id = $1`,
  row: {},
});

const readHasRoleByRules = defineStatement({
  name: 'read_whether_user_has_role_by_rules',
  text: `
    SELECT EXISTS (SELECT FROM team_members m JOIN teams t ON t.id = m.team_id
      WHERE m.user_id = $1 AND t.uid = ANY($2::text[])) AS found`,
  row: { found: boolean },
});

/** Returns the purpose with which the refresh token of an identity is encrypted. */
export const sealPurpose = (identityId: string): string => `sign-on ${identityId}`;

export interface SignOnDeps {
  readonly db: Database;
  readonly vault: Vault;
  readonly log: Logger;
  readonly signOn: SignOn;
}

/** A person of the service, and the person's identity at the provider. */
export interface KnownPerson {
  readonly identityId: string;
  readonly userId: string;
  readonly uid: string;
}

/**
 * Returns the role of a person in each team that rules manage; null if no rule gives the person a role in the team. If several rules match,
 * the highest role counts. Groups are compared exactly, character by character: a group with a similar name gives no role.
 */
function rolesByRules(
  teams: readonly TeamRules[],
  provider: string,
  groups: readonly string[],
): ReadonlyMap<string, Role | null> {
  const given = new Set(groups);
  return new Map(
    teams.map(({ team, rules }) => {
      const matching = rules.filter((rule) => rule.provider === provider && given.has(rule.group));
      const highest = matching.reduce<Role | null>(
        (role, rule) => (role !== null && isAtLeast(role, rule.role) ? role : rule.role),
        null,
      );
      return [team, highest];
    }),
  );
}

/**
 * Stores what the provider reports about a person now: name, refresh token, and the roles in teams that rules manage. Returns false if the
 * person has a role by rules, and the provider does not report the groups: then the roles stay, and the person counts as not confirmed.
 */
export async function confirmPerson(
  tx: Queryable,
  { vault, log, signOn }: SignOnDeps,
  provider: Provider,
  { identityId, userId, uid }: KnownPerson,
  person: ProvidedPerson,
  from: RequestOrigin | null,
): Promise<boolean> {
  const { displayName, email, groups, refreshToken } = person;
  await tx.query(renameUser, [userId, displayName, email]);
  const sealed = refreshToken === undefined ? null : vault.seal(sealPurpose(identityId), refreshToken);
  if (groups.kind === 'unknown') {
    const [byRules] = await tx.query(readHasRoleByRules, [userId, signOn.teams.map(({ team }) => team)]);
    if (byRules?.found) {
      log.warn(
        { provider: provider.id, user_uid: uid, reason: groups.why },
        'a provider does not report the groups of a person',
      );
      await tx.query(keepUnconfirmed, [identityId, sealed, vault.keyId, signOn.refreshMinutes]);
      return false;
    }
  }
  await tx.query(confirm, [identityId, sealed, vault.keyId, signOn.unconfirmedHours, signOn.refreshMinutes]);
  if (groups.kind === 'unknown') return true;
  const full = await applyRoles(tx, { uid, displayName }, rolesByRules(signOn.teams, provider.id, groups.names), {
    from,
  });
  if (full.length > 0)
    log.warn(
      { user_uid: uid, teams: full },
      'rules could not add a person: the teams are full, or too many for a person',
    );
  return true;
}

/**
 * Reasons why a person is not signed in. `used`: the provider's answer was already used; `no_team`: the person is in no team; `no_groups`:
 * the provider does not report the groups that the rules need; or the invitation is not valid.
 */
export type SignInRefusal =
  | { readonly refused: 'used' | 'no_team' }
  | { readonly refused: 'no_groups'; readonly why: string }
  | { readonly invitation: AcceptRefusal };

/** Thrown to undo the sign-in. */
class NoGroups extends Error {}

/** Signs the person in. If the person would be in no team, the person is not stored. */
export async function signInPerson(
  deps: SignOnDeps,
  provider: Provider,
  attempt: Attempt,
  person: ProvidedPerson,
  from: RequestOrigin,
): Promise<NewSession | SignInRefusal> {
  const { db, signOn } = deps;
  const { issuer } = provider;
  const { invitation } = attempt;
  try {
    return await db.transaction(async (tx) => {
      const [isFirst] = await tx.query(insertUse, [hash('sha256', checksOf(attempt).state, 'buffer')]);
      if (!isFirst) return { refused: 'used' } as const;
      await tx.query(lockIdentity, [issuer, person.subject]);
      const names = person.groups.kind === 'groups' ? person.groups.names : [];
      const roles = rolesByRules(signOn.teams, provider.id, names);
      const hasTeam = invitation !== undefined || [...roles.values()].some((role) => role !== null);
      const known = await findPerson(tx, issuer, person.subject);
      if (known === null && !hasTeam) {
        if (person.groups.kind === 'unknown' && roles.size > 0) throw new NoGroups(person.groups.why);
        return { refused: 'no_team' } as const;
      }
      const found = known ?? (await makePerson(tx, issuer, person));
      const isConfirmed = await confirmPerson(tx, deps, provider, found, person, from);
      if (!isConfirmed && person.groups.kind === 'unknown') throw new NoGroups(person.groups.why);
      if (invitation !== undefined) {
        const { isManagedByRules } = signOn;
        const { uid } = found;
        const { displayName } = person;
        await acceptSignedOn(tx, { key: invitation, isManagedByRules }, { uid, displayName }, from);
      }
      return (await createSignedOnSession(tx, found.identityId, from)) ?? ({ refused: 'no_team' } as const);
    });
  } catch (error) {
    if (error instanceof NotAccepted) return { invitation: error.reason };
    if (error instanceof NoGroups) return { refused: 'no_groups', why: error.message };
    throw error;
  }
}

async function findPerson(tx: Queryable, issuer: string, subject: string): Promise<KnownPerson | null> {
  const [row] = await tx.query(readIdentity, [issuer, subject]);
  return row ? { identityId: row.id, userId: row.user_id, uid: row.uid } : null;
}

async function makePerson(tx: Queryable, issuer: string, person: ProvidedPerson): Promise<KnownPerson> {
  const made = { identityId: randomUUIDv7(), userId: randomUUIDv7(), uid: newUid() };
  await tx.query(insertUser, [made.userId, made.uid, person.displayName, person.email]);
  await tx.query(insertIdentity, [made.identityId, issuer, person.subject, made.userId]);
  return made;
}
