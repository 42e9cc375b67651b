/** Lists the texts of other people that ran in conversations, and records that a person accepts them. */
import { maxWaitingContents } from '@runyard/contract/limits';
import type { Acceptance, WaitingContent } from '@runyard/contract/runs/acceptances';
import { firstPart } from '@runyard/contract/wire/shorten';
import type { Queryable } from '../../../platform/store/database/database.ts';
import {
  boolean,
  defineStatement,
  integer,
  json,
  nullable,
  text,
  timestamp,
  uuid,
} from '../../../platform/store/database/statement.ts';
import { isUuid } from '../../../platform/store/database/uuid.ts';
import type { RunActor } from '../../../team/access/actor.ts';
import { type Author, recordChange } from '../../../team/access/audit/record.ts';
import { readStaff } from '../../../team/access/contents/gateway-rights.ts';
import { readProfiles } from '../../../team/access/profiles.ts';
import { authorsOfFollowup, turnOfConversation } from './present-rights.ts';

/**
 * SQL: the prompts and follow-ups of the runs of a conversation, with the columns `id`, `run_id`, `authors`, `message` and `at`.
 * `isContent`: SQL condition for contents `k` of the runs. Authors of these contents count as authors of the prompts.
 */
const textsOf = (conversationId: string, isContent = 'true'): string => `(
  SELECT c.id, c.id AS run_id, q.prompt AS message, c.created_at AS at,
    (SELECT coalesce(jsonb_agg(k->'author'), '[]') FROM jsonb_array_elements(q.contents) k WHERE k->'accepted' = 'false' AND ${isContent})
      || jsonb_build_array(jsonb_build_object('kind', c.executor_kind, 'uid', c.executor_uid)) AS authors
  FROM runs c JOIN run_requests q ON q.run_id = c.id WHERE c.conversation_id = ${conversationId}
  UNION ALL
  SELECT f.id, f.run_id, f.message, f.created_at, ${authorsOfFollowup('f')}
  FROM runs c JOIN followups f ON f.run_id = c.id WHERE c.conversation_id = ${conversationId})`;

/** At most this many of the person's last runs are searched for conversations that wait. */
const maxSearchedRuns = 500;
/** Number of days after the last change of a run for which its conversation waits in the list. */
const waitingDays = 30;
const maxShownTexts = 100;
const maxShownLength = 4_000;

/**
 * Stored contents, such as an environment, have their own entries in the list. For a conversation, they count only if the request names
 * this conversation.
 */
const isShown = "($3::uuid IS NOT NULL OR k->>'kind' IN ('prompt', 'run', 'conversation'))";

const readWaiting = defineStatement({
  name: 'read_conversations_that_wait_for_acceptance',
  text: `
    SELECT m.conversation_id AS uid, ${turnOfConversation('m.conversation_id')} AS turn, t.texts, t.at,
      (SELECT l.title FROM runs l WHERE l.conversation_id = m.conversation_id ORDER BY l.id DESC LIMIT 1) AS title,
      (SELECT max(a.turn) FROM conversation_acceptances a WHERE a.conversation_id = m.conversation_id AND a.user_uid = $2) AS accepted_turn
    FROM (
      SELECT DISTINCT conversation_id FROM (
        SELECT conversation_id FROM runs
        WHERE $3::uuid IS NULL AND facets @> ARRAY[run_facet($1, 'executor=' || $2)] AND team_id = $1 AND updated_at > now() - interval '${waitingDays} days'
        ORDER BY updated_at DESC LIMIT ${maxSearchedRuns}) r
      UNION SELECT conversation_id FROM runs WHERE conversation_id = $3 AND team_id = $1) m
    CROSS JOIN LATERAL (
      SELECT jsonb_agg(jsonb_build_object('authors', x.authors, 'message', left(x.message, ${maxShownLength + 1})) ORDER BY x.at) AS texts, max(x.at) AS at
      FROM (SELECT DISTINCT ON (x.id) x.* FROM ${textsOf('m.conversation_id', isShown)} x CROSS JOIN LATERAL jsonb_array_elements(x.authors) w (author)
        WHERE w.author <> jsonb_build_object('kind', 'user', 'uid', $2::text)
          AND NOT EXISTS (SELECT FROM conversation_acceptances a WHERE a.text_id = x.id AND a.user_uid = $2)) x) t
    WHERE t.texts IS NOT NULL ORDER BY t.at DESC LIMIT ${maxWaitingContents}`,
  row: {
    uid: uuid,
    turn: integer,
    texts: json<{ authors: (RunActor | null)[]; message: string }[]>(),
    at: timestamp,
    title: text(),
    accepted_turn: nullable(integer),
  },
});

interface Member {
  readonly teamId: string;
  readonly creator: RunActor;
}

/** `uid`: only this conversation, even if its acceptance changes nothing. `hasPersonal`: the person has rights that colleagues lack. */
interface Wanted {
  readonly uid?: string | undefined;
  readonly hasPersonal: boolean;
}

/** Returns the conversations of the person's runs in which texts ran that the person has neither written nor accepted. */
export async function listWaitingConversations(
  db: Queryable,
  { teamId, creator }: Member,
  { uid, hasPersonal }: Wanted,
): Promise<WaitingContent[]> {
  if (uid !== undefined && !isUuid(uid)) return [];
  const rows = await db.query(readWaiting, [teamId, creator.uid, uid ?? null]);
  const authors = rows.flatMap(({ texts }) => texts.flatMap((each) => each.authors.flatMap((author) => author ?? [])));
  const [isOfTeam, profileOf] = await Promise.all([readStaff(db, teamId, authors), readProfiles(db, teamId, authors)]);
  // People of the team have the same rights, except personal rights.
  const isWanted = (author: RunActor | null) =>
    hasPersonal || uid !== undefined || author?.kind !== 'user' || !isOfTeam(author);
  const nameOf = (author: RunActor | null) =>
    author === null ? 'an unknown author' : `${profileOf(author).display_name ?? author.kind} (${author.uid})`;
  return rows
    .filter(({ texts }) => texts.some((each) => each.authors.some(isWanted)))
    .map(({ texts, ...row }): WaitingContent => {
      const others = texts.flatMap((each) => each.authors).filter((author) => author?.uid !== creator.uid);
      const known = [
        ...new Map(others.flatMap((author) => (author ? [[`${author.kind} ${author.uid}`, author]] : []))).values(),
      ];
      const profiles = known.map((author) => {
        const { email: _, ...profile } = profileOf(author);
        return profile;
      });
      const [first] = others;
      const profile = first ? profiles[0] : undefined;
      return {
        kind: 'conversation',
        uid: row.uid,
        name: row.title,
        revision: row.turn,
        ...(profile ? { author: profile } : {}),
        authors: profiles,
        written_at: row.at,
        ...(row.accepted_turn === null ? {} : { accepted_revision: row.accepted_turn }),
        difference: texts.slice(-maxShownTexts).map(({ authors: of, message }, index) => ({
          path: `texts.${index + 1}`,
          after: `${of.map(nameOf).join(', ')}: ${message.length > maxShownLength ? `${firstPart(message, maxShownLength)}…` : message}`,
        })),
      };
    });
}

const readTurn = defineStatement({
  name: 'read_last_turn_of_conversation',
  text: `SELECT ${turnOfConversation('$1::uuid')} AS turn, min(title) AS title FROM runs WHERE conversation_id = $1 AND team_id = $2 HAVING count(*) > 0`,
  row: { turn: integer, title: text() },
});

/**
 * One statement reads the number of the last turn and writes the texts, so it accepts no text that arrived after the person had read the
 * conversation. If the turn is not the last one, it writes nothing.
 */
const write = defineStatement({
  name: 'write_acceptance_of_conversation',
  text: `
    INSERT INTO conversation_acceptances AS a (text_id, user_uid, conversation_id, run_id, turn)
    SELECT x.id, $3, $1, x.run_id, $4 FROM ${textsOf('$1::uuid')} x
    WHERE ${turnOfConversation('$1::uuid')} = $4 AND EXISTS (SELECT FROM runs r WHERE r.conversation_id = $1 AND r.team_id = $2)
    ON CONFLICT (text_id, user_uid) DO UPDATE SET turn = excluded.turn
    RETURNING a.accepted_at, xmax = 0 AS is_new`,
  row: { accepted_at: timestamp, is_new: boolean },
});

/** Outcome of an acceptance. `other_revision` 409, with the number of the last turn. `not_found` 404. */
type ConversationOutcome =
  | { readonly kind: 'accepted'; readonly acceptance: Acceptance }
  | { readonly kind: 'other_revision'; readonly revision: number }
  | { readonly kind: 'not_found' };

/**
 * Accepts all texts of a conversation up to its last turn. Later turns of its runs then have the rights again with which the runs were
 * created. To accept them again changes nothing.
 */
export async function acceptConversation(
  tx: Queryable,
  by: Author,
  { uid, revision }: { readonly uid: string; readonly revision: number },
): Promise<ConversationOutcome> {
  const [found] = isUuid(uid) ? await tx.query(readTurn, [uid, by.teamId]) : [];
  if (!found) return { kind: 'not_found' };
  const rows = await tx.query(write, [uid, by.teamId, by.creator.uid, revision]);
  const [last] = rows
    .map(({ accepted_at }) => accepted_at)
    .sort()
    .slice(-1);
  if (last === undefined) return { kind: 'other_revision', revision: found.turn };
  if (rows.some(({ is_new }) => is_new))
    await recordChange(tx, by, {
      action: 'content.accept',
      subject: { type: 'conversation', uid, name: found.title },
      after: { revision },
    });
  return { kind: 'accepted', acceptance: { kind: 'conversation', uid, revision, accepted_at: last } };
}
