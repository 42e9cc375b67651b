/** Finds contents with texts that a person has neither written nor accepted. */
import { maxDifferenceLength, maxWaitingContents, maxWaitingPeople } from '@runyard/contract/limits';
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

/** SQL: the person is a member who may use the secrets of the team. */
const isMember = (teamId: string, uid: string): string => `EXISTS (
  SELECT FROM team_members m JOIN users u ON u.id = m.user_id WHERE m.team_id = ${teamId} AND u.uid = ${uid} AND m.role <> 'viewer')`;

/** SQL: the person has personal rights in the team, which colleagues lack. */
const hasPersonal = (teamId: string, person: string): string => `(
  EXISTS (SELECT FROM stored_secrets s WHERE s.team_id = ${teamId} AND s.owner_uid = ${person})
  OR EXISTS (SELECT FROM code_host_credentials h JOIN users u ON u.id = h.user_id WHERE h.team_id = ${teamId} AND u.uid = ${person}))`;

/**
 * SQL: the texts `o` of the content `c` that the person $2 of the team $1 has neither written nor accepted. `authors`: their authors, NULL
 * if there are no such texts. `keys`: their keys. `since`: the first revision with one of them. `lacks_rights`: one of the authors may lack
 * rights of the team, and no member has accepted the texts of this author.
 */
const openTexts = `
      CROSS JOIN LATERAL (
        SELECT jsonb_agg(w.author) AS authors, jsonb_agg(to_jsonb(w.texts)) AS keys,
          min((SELECT min((c.texts->k->>'since')::integer) FROM unnest(w.texts) k)) AS since,
          bool_or(NOT (coalesce(w.author->>'kind' = 'user' AND ${isMember('$1', "w.author->>'uid'")}, false)
            OR EXISTS (SELECT FROM unnest(w.accepted_by) p (uid) WHERE ${isMember('$1', 'p.uid')}))) AS lacks_rights
        FROM open_authors(c.kind, c.uid, c.texts, 'user', $2) w
      ) o`;

/**
 * SQL: the content `c` may wait for the person. This condition is cheap, and false for most contents: the person has accepted the present
 * revision, or its only authors are the person or, if the person has no personal rights, members of the team.
 */
const mayWait = `(
  (SELECT a.revision FROM acceptances a WHERE a.user_uid = $2 AND a.kind = c.kind AND a.uid = c.uid) IS DISTINCT FROM c.revision
  AND jsonb_path_exists(c.texts, '$.*.authors[*] ? (!(@.kind == "user" && @.uid == $people[*]))', (
    SELECT jsonb_build_object('people', CASE WHEN ${hasPersonal('$1', '$2')} THEN jsonb_build_array($2::text)
      ELSE coalesce((SELECT jsonb_agg(u.uid) FROM team_members m JOIN users u ON u.id = m.user_id
        WHERE m.team_id = $1 AND m.role <> 'viewer'), '[]') END))))`;

/** SQL: the content `c` waits for the person. */
const isWaiting = `o.authors IS NOT NULL AND (o.lacks_rights OR ${hasPersonal('$1', '$2')})`;

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
      SELECT FROM ${presentContents} ${openTexts}
      WHERE ${isVisible('$1', '$2')} AND ${mayWait} AND ${isWaiting}
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
    SELECT c.kind, c.uid, c.revision, c.author_kind, c.author_uid, c.content->>'name' AS name, c.created_at, o.authors, o.keys, coalesce(
      (SELECT a.revision FROM acceptances a WHERE a.user_uid = $2 AND a.kind = c.kind AND a.uid = c.uid AND a.revision < c.revision),
      (SELECT e.revision FROM content_revisions e WHERE e.kind = c.kind AND e.uid = c.uid AND e.revision < o.since
        ORDER BY e.revision DESC LIMIT 1)) AS earlier_revision
    FROM ${presentContents} ${openTexts}
    WHERE ${isVisible('$1', '$2')} AND o.authors IS NOT NULL
      AND ($3::text IS NULL OR c.kind = $3) AND ($4::text IS NULL OR c.uid = $4)
      AND ($4 IS NOT NULL OR (${mayWait} AND ${isWaiting}))
    ORDER BY c.created_at DESC, c.kind, c.uid LIMIT ${maxWaitingContents}`,
  row: {
    kind: text<ContentKind>(),
    uid: text(),
    revision: integer,
    author_kind: nullable(text<RunActor['kind']>()),
    author_uid: nullable(text()),
    name: nullable(text()),
    created_at: timestamp,
    authors: json<readonly (RunActor | null)[]>(),
    keys: json<readonly (readonly string[])[]>(),
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

/** Returns the members that contain one of these texts, or that are in one of these lists and maps (`content_revisions.texts`). */
function containing(keys: readonly (readonly string[])[]): (path: readonly string[]) => boolean {
  const isWithin = (path: readonly string[], holder: readonly string[]) =>
    holder.every((name, index) => path[index] === name);
  const texts = keys.flat().map((key) => ({
    isHolder: key.startsWith('-'),
    path: JSON.parse(key.replace(/^-/, '')) as readonly string[],
  }));
  return (path) => texts.some((text) => isWithin(text.path, path) || (text.isHolder && isWithin(path, text.path)));
}

/**
 * Returns the difference between a revision and an earlier revision, of the members that wait; undefined if one of the revisions was deleted
 * because it was old.
 */
async function readDifference(
  db: Queryable,
  {
    kind,
    uid,
    revision,
    earlier_revision,
    keys,
  }: Pick<RowOf<typeof readWaiting>, 'kind' | 'uid' | 'revision' | 'earlier_revision' | 'keys'>,
): Promise<ContentDifference[] | undefined> {
  const [found] = await db.query(readTwo, [kind, uid, revision, earlier_revision]);
  if (!found || (found.earlier === null && earlier_revision !== null)) return undefined;
  const { owner: _, ...content } = found.content;
  const earlier = found.earlier === null ? undefined : { ...found.earlier, owner: undefined };
  return differencesOf(earlier, content, containing(keys));
}

/** Returns the contents that wait for a person of the team. */
export async function listWaiting(
  db: Queryable,
  { teamId, creator }: { readonly teamId: string; readonly creator: RunActor },
  {
    kind,
    uid,
    isBrief,
  }: {
    readonly kind?: ContentKind | undefined;
    readonly uid?: string | undefined;
    /** True: without the differences. */
    readonly isBrief?: boolean;
  },
): Promise<WaitingContent[]> {
  const rows = await db.query(readWaiting, [teamId, creator.uid, kind ?? null, uid ?? null]);
  const authorOf = ({ author_kind: kind, author_uid: uid }: (typeof rows)[number]) =>
    kind && uid ? { kind, uid } : null;
  const profileOf = await readProfiles(
    db,
    teamId,
    rows.flatMap((row) => [authorOf(row), ...row.authors].flatMap((author) => author ?? [])),
  );
  let left = isBrief ? -1 : uid === undefined ? maxDifferenceLength : Number.POSITIVE_INFINITY;
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
      authors: uniqueActors(row.authors).map((each) => withoutAddress(profileOf(each))),
      written_at: row.created_at,
      ...(row.earlier_revision === null ? {} : { accepted_revision: row.earlier_revision }),
      ...(left < 0 || !difference ? {} : { difference }),
    });
  }
  return waiting;
}

/**
 * `kept`: the authors, besides the caller $3, of texts that the present revision changed. `people`: other members with personal rights who
 * have neither written nor accepted all texts.
 */
const readAfterChange = defineStatement({
  name: 'read_who_waits_after_change',
  text: `
    SELECT c.revision,
      coalesce((SELECT jsonb_agg(DISTINCT a.author) FROM open_authors(c.kind, c.uid, c.texts, $2, $3) a
        WHERE a.author IS NOT NULL AND EXISTS (SELECT FROM unnest(a.texts) k WHERE (c.texts->k->>'since')::integer = c.revision)), '[]') AS kept,
      coalesce((SELECT jsonb_agg(p.uid) FROM (
        SELECT u.uid FROM team_members m JOIN users u ON u.id = m.user_id
        WHERE m.team_id = $1 AND m.role <> 'viewer' AND u.uid <> $3
          AND (c.kind <> 'schedule' OR coalesce(c.content->>'owner', u.uid) = u.uid)
          AND (EXISTS (SELECT FROM stored_secrets s WHERE s.team_id = $1 AND s.owner_uid = u.uid)
            OR EXISTS (SELECT FROM code_host_credentials h WHERE h.team_id = $1 AND h.user_id = u.id))
          AND EXISTS (SELECT FROM open_authors(c.kind, c.uid, c.texts, 'user', u.uid))
        ORDER BY u.uid LIMIT ${maxWaitingPeople}) p), '[]') AS people
    FROM content_revisions c WHERE c.team_id = $1 AND c.kind = $4 AND c.uid = $5 AND c.superseded_at IS NULL`,
  row: { revision: integer, kept: json<readonly RunActor[]>(), people: json<readonly string[]>() },
});

/** Returns who waits after a change of a content by the caller; null if the team has no such content. */
export async function readWhoWaits(
  db: Queryable,
  teamId: string,
  caller: RunActor,
  { kind, uid }: { readonly kind: ContentKind; readonly uid: string },
): Promise<RowOf<typeof readAfterChange> | null> {
  return (await db.query(readAfterChange, [teamId, caller.kind, caller.uid, kind, uid]))[0] ?? null;
}

/** Returns each known author once. One author is several times in the list if different people have accepted different texts. */
const uniqueActors = (actors: readonly (RunActor | null)[]): RunActor[] => [
  ...new Map(actors.flatMap((actor) => (actor ? [[`${actor.kind} ${actor.uid}`, actor] as const] : []))).values(),
];

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
 * Returns the members that differ between two contents, and whose path `isWanted`. The members of `after` come first, in their order in `after`, then the members
 * that only `before` has. Objects are compared member by member, other values as a whole. `before` is undefined if there is no earlier
 * content.
 */
export function differencesOf(
  before: unknown,
  after: unknown,
  isWanted: (path: readonly string[]) => boolean = () => true,
): ContentDifference[] {
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
    if (((one ?? null) === null && (other ?? null) === null) || !isWanted(path)) return;
    found.push({
      path: path.join('.'),
      ...(one === undefined ? {} : { before: one }),
      ...(other === undefined ? {} : { after: other }),
    });
  };
  compare([], before, after);
  return found;
}
