/**
 * Asks the identity providers regularly about each person, and suspends people whom the providers do not confirm. The keys of a suspended
 * person do not work until the person signs in again or the provider confirms the person.
 */
import type { Loop } from '../../../platform/domain.ts';
import { defineSealedRows } from '../../../platform/secrets/seal-again.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import {
  boolean,
  bytes,
  defineStatement,
  integer,
  nullable,
  text,
  uuid,
} from '../../../platform/store/database/statement.ts';
import { recordAction } from '../audit/record.ts';
import { keysChannel } from '../keys/key.ts';
import type { Answer, Provider } from './provider.ts';
import { confirmPerson, type KnownPerson, type SignOnDeps, sealPurpose } from './sign-in.ts';

/** Number of people that one process takes at a time. */
const batchSize = 20;

const findDue = defineStatement({
  name: 'find_people_to_confirm',
  text: 'SELECT FROM sign_on_identities WHERE next_check_at <= now() LIMIT 1',
  row: {},
});

/**
 * Takes a batch of people to check. Many providers accept a refresh token only once, so no other process may check the same person at the
 * same time. After two minutes, the process that took a person counts as dead.
 */
const takeDue = defineStatement({
  name: 'take_people_to_confirm',
  text: `
    WITH due AS (
      SELECT id, token_sent FROM sign_on_identities WHERE next_check_at <= now()
      ORDER BY next_check_at LIMIT ${batchSize} FOR UPDATE SKIP LOCKED),
    taken AS (
      UPDATE sign_on_identities i SET next_check_at = now() + interval '2 minutes', token_sent = true FROM due WHERE i.id = due.id
      RETURNING i.id, i.user_id, i.issuer, i.subject, i.refresh_token, due.token_sent)
    SELECT taken.*, u.uid FROM taken JOIN users u ON u.id = taken.user_id`,
  row: {
    id: uuid,
    user_id: uuid,
    issuer: text(),
    subject: text(),
    refresh_token: nullable(bytes),
    /** The token was sent before, and no answer was stored. */
    token_sent: boolean,
    uid: text(),
  },
});
type DueRow = Awaited<ReturnType<typeof takeBatch>>[number];

/** SQL: the refresh token is still the same. If a sign-in has written a newer token meanwhile, no check is needed. */
const isUnchanged = 'id = $1 AND refresh_token IS NOT DISTINCT FROM $2';

const lockUnchanged = defineStatement({
  name: 'lock_person_to_confirm',
  text: `SELECT confirmed_until <= now() AS is_over FROM sign_on_identities WHERE ${isUnchanged} FOR UPDATE`,
  row: { is_over: boolean },
});

/**
 * $3: ask again soon. $4: the token was sent, now or before. Providers that rotate refresh tokens accept the earlier token for some seconds after a lost answer, so the first
 * repetition comes soon.
 */
const askLater = defineStatement({
  name: 'ask_for_person_later',
  text: `
    UPDATE sign_on_identities SET next_check_at = now() + CASE WHEN $3::boolean THEN interval '5 seconds' ELSE interval '1 minute' END,
      token_sent = $4
    WHERE ${isUnchanged}`,
  row: {},
});

/** Removes the refresh token, so no provider can confirm the person until the next sign-in. */
const waitForEnd = defineStatement({
  name: 'wait_for_end_of_person',
  text: `UPDATE sign_on_identities SET refresh_token = NULL, next_check_at = confirmed_until WHERE id = $1`,
  row: {},
});

/** Suspends the person at once, and ends the sessions. A key that is being created at this moment does not work either. */
const suspendNow = defineStatement({
  name: 'suspend_refused_person',
  text: `
    WITH suspended AS (
      UPDATE sign_on_identities SET refresh_token = NULL, confirmed_until = least(confirmed_until, now()), next_check_at = NULL
      WHERE id = $1 RETURNING id),
    ended AS (DELETE FROM api_keys WHERE signed_on_by IN (SELECT id FROM suspended) RETURNING 1)
    SELECT (SELECT count(*) FROM ended)::integer AS sessions, pg_notify('${keysChannel}', '')::text AS notified FROM suspended`,
  row: { sessions: integer, notified: text() },
});

const stopAsking = defineStatement({
  name: 'stop_asking_for_person',
  text: 'UPDATE sign_on_identities SET refresh_token = NULL, next_check_at = NULL WHERE id = $1',
  row: {},
});

const readTeamIds = defineStatement({
  name: 'read_team_ids_of_user',
  text: 'SELECT team_id FROM team_members WHERE user_id = $1 ORDER BY team_id',
  row: { team_id: uuid },
});

/** Names the columns with encrypted refresh tokens, so that they are encrypted again when the vault's key changes. */
export const sealedRefreshTokens = defineSealedRows({
  table: 'sign_on_identities',
  id: 'id',
  sealed: 'refresh_token',
  purpose: sealPurpose,
});

/** Returns the loop that checks people whose next check is due. */
export const confirmPeople = (deps: SignOnDeps): Loop => ({
  name: 'confirming people with their identity providers',
  everyMs: 1_000,
  due: [findDue],
  work: async (signal) => {
    // Issuers that failed in this round. They are not asked again in this round, so that a slow issuer delays people of other issuers
    // by only one batch.
    const away = new Set<string>();
    while (!signal.aborted) {
      const batch = await takeBatch(deps.db);
      const kinds = await Promise.all(batch.map(async (row) => await confirmOne(deps, row, away)));
      for (const issuer of new Set(batch.map((row) => row.issuer))) {
        const ofIssuer = kinds.filter((_kind, index) => batch[index]?.issuer === issuer);
        // Skip the issuer only after several failures, because a failure for one or two people does not mean that the provider fails.
        if (ofIssuer.length >= 3 && ofIssuer.every((kind) => kind === 'unavailable')) away.add(issuer);
      }
      if (batch.length < batchSize) return;
    }
  },
});

const takeBatch = async (db: Queryable) => await db.query(takeDue);

/**
 * Asks the provider about one person. Returns the kind of the answer; null if no request could be sent. A failure concerns this person
 * only.
 */
async function confirmOne(deps: SignOnDeps, row: DueRow, away: ReadonlySet<string>): Promise<Answer['kind'] | null> {
  try {
    const provider = deps.signOn.providers.find(({ issuer }) => issuer === row.issuer);
    if (provider === undefined || row.refresh_token === null) {
      await endAtBound(deps, row);
      return null;
    }
    const answer: Answer = away.has(row.issuer)
      ? { kind: 'unavailable', reason: 'it is away', isUnsent: true }
      : await ask(deps, provider, row, row.refresh_token);
    await act(deps, provider, row, answer);
    return answer.kind;
  } catch (error) {
    deps.log.warn({ err: error, user_uid: row.uid }, 'a person was not confirmed; the next round tries again');
    return null;
  }
}

async function ask({ vault }: SignOnDeps, provider: Provider, { id, subject }: DueRow, token: Buffer): Promise<Answer> {
  return await provider.refresh(vault.open(sealPurpose(id), token), subject);
}

const personOf = ({ id, user_id: userId, uid }: DueRow): KnownPerson => ({ identityId: id, userId, uid });

/** Applies the answer of the provider about a person. Does nothing if the person has signed in meanwhile. */
async function act(deps: SignOnDeps, provider: Provider, row: DueRow, answer: Answer): Promise<void> {
  await deps.db.transaction(async (tx) => {
    const [isUnchanged] = await tx.query(lockUnchanged, [row.id, row.refresh_token]);
    if (!isUnchanged) return;
    const isSent = row.token_sent || answer.kind === 'person' || answer.isUnsent !== true;
    switch (answer.kind) {
      case 'person':
        return await confirmPerson(tx, deps, provider, personOf(row), answer.person, null);
      case 'refused':
        // The provider may have taken the token in a request whose answer was lost. So the refusal says nothing about the person.
        if (row.token_sent) return void (await tx.query(waitForEnd, [row.id]));
        await tx.query(suspendNow, [row.id]);
        return await recordSuspension(tx, row, answer.reason);
      case 'invalid':
      case 'unavailable':
        // Without an answer, the person's keys and sessions work until `confirmed_until`; every check of a key reads this time.
        await tx.query(askLater, [row.id, row.refresh_token, isSent && !row.token_sent, isSent]);
    }
  });
}

/** Suspends a person whom no provider can confirm when the time limit is reached, and then stops asking about the person. */
async function endAtBound({ db }: SignOnDeps, row: DueRow): Promise<void> {
  await db.transaction(async (tx) => {
    const [unchanged] = await tx.query(lockUnchanged, [row.id, row.refresh_token]);
    if (!unchanged) return;
    if (!unchanged.is_over) return void (await tx.query(waitForEnd, [row.id]));
    await tx.query(stopAsking, [row.id]);
    await recordSuspension(tx, row, 'not confirmed');
  });
}

/** Records in the audit log of each team that the person is suspended. */
async function recordSuspension(tx: Queryable, { user_id: userId, uid }: DueRow, reason: string): Promise<void> {
  for (const { team_id: teamId } of await tx.query(readTeamIds, [userId])) {
    const by = { teamId, creator: { kind: 'user', uid }, keyId: null, from: null } as const;
    await recordAction(tx, by, { action: 'sign_on.suspend', subject: { type: 'user', uid }, after: { reason } });
  }
}
