/** Finds contents whose present revision a person has neither written nor accepted. */
import { maxDifferenceLength, maxWaitingContents } from '@runyard/contract/limits';
import type { ContentDifference, ContentKind, WaitingContent } from '@runyard/contract/runs/acceptances';
import type { Queryable } from '../../platform/store/database/database.ts';
import {
  boolean,
  defineStatement,
  integer,
  json,
  nullable,
  type RowOf,
  text,
  timestamp,
} from '../../platform/store/database/statement.ts';
import type { RunActor } from '../access/actor.ts';
import { readProfiles } from '../access/profiles.ts';
import { guestOf } from '../environments/may-use.ts';

/**
 * SQL: the person may see the content `c`. The content belongs to the team and is not a personal schedule of another person, or the
 * content is an environment of another team that the person may use as a guest.
 */
export const isVisible = (teamId: string, person: string): string => `(
  (c.team_id = ${teamId} AND (c.kind <> 'schedule' OR coalesce(c.content->>'owner', ${person}) = ${person}))
  OR (c.kind = 'environment' AND c.uid IN (${guestOf(person)})))`;

/** SQL: the person wrote or accepted the revision `o`. */
const isAccepted = (o: string, person: string): string => `((${o}.author_kind = 'user' AND ${o}.author_uid = ${person})
  OR EXISTS (SELECT FROM acceptances a
    WHERE a.user_uid = ${person} AND a.kind = ${o}.kind AND a.uid = ${o}.uid AND a.revision = ${o}.revision))`;

/** SQL: the person has personal rights in the team, which colleagues lack. */
const hasPersonal = (teamId: string, person: string): string => `(
  EXISTS (SELECT FROM stored_secrets s WHERE s.team_id = ${teamId} AND s.owner_uid = ${person})
  OR EXISTS (SELECT FROM code_host_credentials h JOIN users u ON u.id = h.user_id WHERE h.team_id = ${teamId} AND u.uid = ${person}))`;

/**
 * SQL: the person may have a right that the author of the content `c` lacks. People of the same team have the same rights, except personal
 * rights.
 */
const hasMore = (teamId: string, person: string): string => `(c.author_kind IS DISTINCT FROM 'user'
  OR NOT EXISTS (SELECT FROM team_members m JOIN users u ON u.id = m.user_id
    WHERE m.team_id = ${teamId} AND u.uid = c.author_uid AND m.role <> 'viewer')
  OR ${hasPersonal(teamId, person)})`;

/**
 * SQL: the present contents `c` of the team $1, and the environments that the person $2 may use as a guest. There are two reads from
 * indexes, because a single read with OR would read the contents of all teams.
 */
const presentContents = `(
      SELECT * FROM content_revisions WHERE team_id = $1 AND superseded_at IS NULL
      UNION ALL SELECT v.* FROM (SELECT DISTINCT environment_uid FROM (${guestOf('$2')}) g) g
      JOIN content_revisions v ON v.kind = 'environment' AND v.uid = g.environment_uid AND v.team_id <> $1 AND v.superseded_at IS NULL
    ) c`;

const readPersonal = defineStatement({
  name: 'has_personal_rights',
  text: `SELECT ${hasPersonal('$1', '$2')} AS has_personal`,
  row: { has_personal: boolean },
});

/** Returns whether the person has a personal secret or a personal credential in the team. */
export async function hasPersonalRights(db: Queryable, teamId: string, personUid: string): Promise<boolean> {
  const [row] = await db.query(readPersonal, [teamId, personUid]);
  return row?.has_personal ?? false;
}

const countRows = defineStatement({
  name: 'count_contents_that_wait_for_acceptance',
  text: `
    SELECT count(*)::int AS count FROM (
      SELECT FROM ${presentContents}
      WHERE ${isVisible('$1', '$2')} AND NOT coalesce(${isAccepted('c', '$2')}, false) AND ${hasMore('$1', '$2')}
      LIMIT ${maxWaitingContents}) waiting`,
  row: { count: integer },
});

/** Counts the contents that `listWaiting` lists for a person of the team. */
export async function countWaiting(
  db: Queryable,
  { teamId, creator }: { readonly teamId: string; readonly creator: RunActor },
): Promise<number> {
  const [row] = await db.query(countRows, [teamId, creator.uid]);
  return row?.count ?? 0;
}

/** $3, $4: kind and uid of a content, or NULL. The content that they name is listed even if its acceptance would change nothing. */
const readWaiting = defineStatement({
  name: 'read_contents_that_wait_for_acceptance',
  text: `
    SELECT c.kind, c.uid, c.revision, c.author_kind, c.author_uid, c.content->>'name' AS name, c.created_at, e.revision AS earlier_revision
    FROM ${presentContents}
    LEFT JOIN LATERAL (
      SELECT o.revision FROM content_revisions o
      WHERE o.kind = c.kind AND o.uid = c.uid AND o.revision < c.revision AND ${isAccepted('o', '$2')}
      ORDER BY o.revision DESC LIMIT 1
    ) e ON true
    WHERE ${isVisible('$1', '$2')} AND NOT coalesce(${isAccepted('c', '$2')}, false)
      AND ($3::text IS NULL OR c.kind = $3) AND ($4::text IS NULL OR c.uid = $4)
      AND ($4 IS NOT NULL OR ${hasMore('$1', '$2')})
    ORDER BY c.created_at DESC, c.kind, c.uid LIMIT ${maxWaitingContents}`,
  row: {
    kind: text<ContentKind>(),
    uid: text(),
    revision: integer,
    author_kind: nullable(text<RunActor['kind']>()),
    author_uid: nullable(text()),
    name: nullable(text()),
    created_at: timestamp,
    earlier_revision: nullable(integer),
  },
});

/** $4: number of the earlier revision, or NULL if there is none. */
const readTwo = defineStatement({
  name: 'read_contents_of_two_revisions',
  text: `
    SELECT c.content, e.content AS earlier FROM content_revisions c
    LEFT JOIN content_revisions e ON e.kind = c.kind AND e.uid = c.uid AND e.revision = $4
    WHERE c.kind = $1 AND c.uid = $2 AND c.revision = $3`,
  row: { content: json<Record<string, unknown>>(), earlier: nullable(json<Record<string, unknown>>()) },
});

/** Returns the difference between a revision and an earlier revision; undefined if one of them was deleted because it was old. */
async function readDifference(
  db: Queryable,
  {
    kind,
    uid,
    revision,
    earlier_revision,
  }: Pick<RowOf<typeof readWaiting>, 'kind' | 'uid' | 'revision' | 'earlier_revision'>,
): Promise<ContentDifference[] | undefined> {
  const [found] = await db.query(readTwo, [kind, uid, revision, earlier_revision]);
  if (!found || (found.earlier === null && earlier_revision !== null)) return undefined;
  const { owner: _, ...content } = found.content;
  return differencesOf(found.earlier === null ? undefined : { ...found.earlier, owner: undefined }, content);
}

/** Returns the contents that wait for a person of the team. */
export async function listWaiting(
  db: Queryable,
  { teamId, creator }: { readonly teamId: string; readonly creator: RunActor },
  { kind, uid }: { readonly kind?: ContentKind | undefined; readonly uid?: string | undefined },
): Promise<WaitingContent[]> {
  const rows = await db.query(readWaiting, [teamId, creator.uid, kind ?? null, uid ?? null]);
  const authorOf = ({ author_kind: kind, author_uid: uid }: (typeof rows)[number]) =>
    kind && uid ? { kind, uid } : null;
  const profileOf = await readProfiles(
    db,
    teamId,
    rows.flatMap((row) => authorOf(row) ?? []),
  );
  let left = uid === undefined ? maxDifferenceLength : Number.POSITIVE_INFINITY;
  const waiting: WaitingContent[] = [];
  for (const row of rows) {
    const author = authorOf(row);
    // Read the differences one after another to save memory, because a definition has up to 8 MB.
    const difference = left < 0 ? undefined : await readDifference(db, row);
    left -= difference ? JSON.stringify(difference).length : 0;
    waiting.push({
      kind: row.kind,
      uid: row.uid,
      ...(row.name === null ? {} : { name: row.name }),
      revision: row.revision,
      ...(author ? { author: withoutAddress(profileOf(author)) } : {}),
      written_at: row.created_at,
      ...(row.earlier_revision === null ? {} : { accepted_revision: row.earlier_revision }),
      ...(left < 0 || !difference ? {} : { difference }),
    });
  }
  return waiting;
}

/** Do not show the mail address, because the author may be a person of another team. */
const withoutAddress = ({ email: _, ...profile }: NonNullable<WaitingContent['author']>) => profile;

type Members = Readonly<Record<string, unknown>>;

/** Maximum depth at which members are compared one by one. Deeper values are compared as a whole. */
const maxDepth = 8;

/**
 * Returns the members of an object, or of a list whose items have distinct names or paths; undefined if the value has no members.
 */
function membersOf(value: unknown): Members | undefined {
  if (value === null || typeof value !== 'object') return undefined;
  if (!Array.isArray(value)) return value as Members;
  const keys = value.map((item: unknown) =>
    item !== null && typeof item === 'object' ? (Reflect.get(item, 'name') ?? Reflect.get(item, 'path')) : undefined,
  );
  const isNamed =
    value.length > 0 && keys.every((key) => typeof key === 'string') && new Set(keys).size === keys.length;
  return isNamed ? Object.fromEntries(value.map((item: unknown, index) => [keys[index], item])) : undefined;
}

/**
 * Returns the members that differ between two contents. The members of `after` come first, in their order in `after`, then the members
 * that only `before` has. Objects are compared member by member, other values as a whole. `before` is undefined if there is no earlier
 * content.
 */
export function differencesOf(before: unknown, after: unknown): ContentDifference[] {
  const found: ContentDifference[] = [];
  const compare = (path: readonly string[], one: unknown, other: unknown) => {
    if (JSON.stringify(one) === JSON.stringify(other)) return;
    const [members, others] = [membersOf(one), membersOf(other)];
    const isLeaf = path.length >= maxDepth || (!members && one !== undefined) || (!others && other !== undefined);
    if (!isLeaf) {
      for (const name of new Set([...Object.keys(others ?? {}), ...Object.keys(members ?? {})]))
        compare([...path, name], members?.[name], others?.[name]);
      return;
    }
    // An absent member and null mean the same in stored contents.
    if ((one ?? null) === null && (other ?? null) === null) return;
    found.push({
      path: path.join('.'),
      ...(one === undefined ? {} : { before: one }),
      ...(other === undefined ? {} : { after: other }),
    });
  };
  compare([], before, after);
  return found;
}
