/** Reads the contents that runs execute, with their revisions and authors. */
import type { ContentKind, RunContentKind } from '@runyard/contract/runs/acceptances';
import type { Approvals } from '@runyard/contract/runs/compare-approvals';
import type { Queryable } from '../../../platform/store/database/database.ts';
import {
  defineStatement,
  float,
  integer,
  json,
  nullable,
  text,
  timestamp,
} from '../../../platform/store/database/statement.ts';
import type { RunActor } from '../actor.ts';

/** A revision of stored content. */
export interface ContentRevision {
  readonly kind: ContentKind;
  readonly uid: string;
  readonly revision: number;
}

/**
 * Content that a run executes. `runs.contents` is a list of such contents. A revision with texts of several people that the executor has
 * not accepted has several contents in the list: one for each author, and for each group of people who have accepted texts of this author.
 */
export interface RunContent {
  readonly kind: RunContentKind;
  /** UID of the content; absent if the content is the prompt of the request. */
  readonly uid?: string;
  /** Number of the revision; absent if contents of this kind have no revisions. */
  readonly revision?: number;
  /** Author of texts that the executor has not accepted, or of the revision if `accepted`. Null: not known. */
  readonly author: RunActor | null;
  /** True if the executor of the run wrote or accepted all texts of the content before the run was created. */
  readonly accepted: boolean;
  /** UIDs of other people who have accepted these texts of the author; absent: nobody. */
  readonly accepted_by?: readonly string[];
  /** Beginning of the text, for people; absent: the content is stored and can be read elsewhere. */
  readonly excerpt?: string;
}

/** Returns a list with the stored revision of a content; an empty list if the content is a prompt, a run or a conversation. */
export const storedRevisionOf = ({ kind, uid, revision }: RunContent): ContentRevision[] =>
  uid === undefined || revision === undefined || kind === 'prompt' || kind === 'run' || kind === 'conversation'
    ? []
    : [{ kind, uid, revision }];

/** SQL: a principal as JSON, or NULL if it is not known. */
const actorJson = (kind: string, uid: string): string => `nullif(actor_of(${kind}, ${uid}), 'null')`;

export const isSameActor = (a: RunActor | null, b: RunActor): boolean => a?.kind === b.kind && a.uid === b.uid;

/** A revision without a row in the answer is not stored any more. */
const readRevisions = defineStatement({
  name: 'read_authors_of_contents',
  text: `
    SELECT c.kind, c.uid, c.revision, ${actorJson('c.author_kind', 'c.author_uid')} AS sender,
      coalesce(o.open, '[]') AS open
    FROM jsonb_to_recordset($1::jsonb) AS i(kind text, uid text, revision integer)
    JOIN content_revisions c ON c.kind = i.kind AND c.uid = i.uid AND c.revision = i.revision
    CROSS JOIN LATERAL (
      SELECT jsonb_agg(jsonb_build_object('author', a.author, 'accepted_by', a.accepted_by)) AS open
      FROM open_authors(c.kind, c.uid, c.texts, $2, $3) a) o`,
  row: {
    kind: text<ContentKind>(),
    uid: text(),
    revision: integer,
    sender: nullable(json<RunActor>()),
    open: json<readonly { readonly author: RunActor | null; readonly accepted_by: readonly string[] }[]>(),
  },
});

const readPresent = defineStatement({
  name: 'read_present_revisions',
  text: `
    SELECT kind, uid, revision FROM content_revisions
    WHERE team_id = $1 AND kind = $2 AND uid = ANY($3::text[]) AND superseded_at IS NULL`,
  row: { kind: text<ContentKind>(), uid: text(), revision: integer },
});

/** Returns the present revisions of contents of the team. Contents that the team does not have are missing in the result. */
export async function readPresentRevisions(
  db: Queryable,
  teamId: string,
  kind: ContentKind,
  uids: readonly string[],
): Promise<readonly ContentRevision[]> {
  return uids.length === 0 ? [] : await db.query(readPresent, [teamId, kind, uids]);
}

/**
 * Returns the contents that an executor of these revisions executes. If the executor has written or accepted all texts of a revision, the
 * revision is one content; otherwise it is one content for each author of the other texts. A revision that is not stored any more has an
 * unknown author.
 */
export async function readContents(
  db: Queryable,
  executor: RunActor,
  revisions: readonly ContentRevision[],
): Promise<RunContent[]> {
  if (revisions.length === 0) return [];
  const rows = await db.query(readRevisions, [JSON.stringify(revisions), executor.kind, executor.uid]);
  return revisions.flatMap(({ kind, uid, revision }): RunContent[] => {
    const found = rows.find((row) => row.kind === kind && row.uid === uid && row.revision === revision);
    if (!found) return [{ kind, uid, revision, author: null, accepted: false }];
    if (found.open.length === 0) return [{ kind, uid, revision, author: found.sender, accepted: true }];
    return found.open.map(({ author, accepted_by }) => ({
      kind,
      uid,
      revision,
      author,
      accepted: false,
      ...(accepted_by.length > 0 ? { accepted_by } : {}),
    }));
  });
}

/** Limits of a configuration whose smaller value is stricter. */
export const limitNames = ['max_cost_usd', 'max_turns', 'max_duration_minutes'] as const;

const readStrictestOf = defineStatement({
  name: 'read_strictest_of_contents',
  text: `
    SELECT coalesce(jsonb_agg(DISTINCT p.v) FILTER (WHERE p.v IS NOT NULL), '[]') AS approvals,
      coalesce((SELECT jsonb_agg(f.v ORDER BY f.revision, f.n) FROM (
        SELECT q.v, min(h.revision) AS revision, min(q.n) AS n FROM jsonb_to_recordset($1::jsonb) AS j(kind text, uid text)
        JOIN content_revisions h ON h.kind = j.kind AND h.uid = j.uid
        CROSS JOIN LATERAL jsonb_path_query(h.content, '$.**.checks[*] ? (@.type() == "object")') WITH ORDINALITY q (v, n)
        GROUP BY q.v) f), '[]') AS checks,
      (SELECT q.v FROM jsonb_to_recordset($1::jsonb) AS j(kind text, uid text)
        JOIN content_revisions h ON h.kind = j.kind AND h.uid = j.uid
        CROSS JOIN LATERAL jsonb_path_query(h.content, '$.** ? (@.output_schema.type() == "object")') q (v)
        ORDER BY h.revision DESC LIMIT 1)->'output_schema' AS output_schema, ${limitNames
          .map(
            (name) =>
              `min((SELECT min(v::text::float8) FROM jsonb_path_query(c.content, '$.**.${name} ? (@.type() == "number")') v)) AS ${name}`,
          )
          .join(', ')}
    FROM jsonb_to_recordset($1::jsonb) AS i(kind text, uid text)
    JOIN content_revisions c ON c.kind = i.kind AND c.uid = i.uid
    LEFT JOIN LATERAL (
      SELECT jsonb_strip_nulls(jsonb_build_object('approval_policy', q.v->'approval_policy', 'approval_rules', q.v->'approval_rules'))
      FROM jsonb_path_query(c.content, '$.** ? (@.approval_policy.type() == "string")') q (v)) p (v) ON true`,
  row: {
    approvals: json<Approvals[]>(),
    checks: json<readonly object[]>(),
    output_schema: nullable(json<Readonly<Record<string, unknown>>>()),
    max_cost_usd: nullable(float),
    max_turns: nullable(float),
    max_duration_minutes: nullable(float),
  },
});

/**
 * Returns the approvals, the smallest limits and the checks that all stored revisions of the contents have, the oldest checks first, and
 * the newest output schema.
 */
export async function readStrictest(db: Queryable, revisions: readonly ContentRevision[]) {
  const [row] = await db.query(readStrictestOf, [JSON.stringify(revisions)]);
  if (!row) throw new Error('an aggregate returned no row');
  return row;
}

const readNames = defineStatement({
  name: 'read_names_of_contents',
  text: `
    SELECT c.kind, c.uid, c.revision, c.content->>'name' AS name
    FROM jsonb_to_recordset($2::jsonb) AS i(kind text, uid text, revision integer)
    JOIN content_revisions c ON c.kind = i.kind AND c.uid = i.uid AND c.revision = i.revision
    WHERE c.team_id = $1`,
  row: { kind: text<ContentKind>(), uid: text(), revision: integer, name: nullable(text()) },
});

/**
 * Returns a function that gives the name that a content has in a revision; undefined if the revision has no name or is not stored any more.
 */
export async function readNamesOfContents(
  db: Queryable,
  teamId: string,
  revisions: readonly ContentRevision[],
): Promise<(revision: ContentRevision) => string | undefined> {
  const rows = revisions.length === 0 ? [] : await db.query(readNames, [teamId, JSON.stringify(revisions)]);
  const names = new Map(rows.map(({ kind, uid, revision, name }) => [`${kind} ${uid} ${revision}`, name]));
  return ({ kind, uid, revision }) => names.get(`${kind} ${uid} ${revision}`) ?? undefined;
}

const readPresentNamesOf = defineStatement({
  name: 'read_present_names_of_contents',
  text: `
    SELECT uid, content->>'name' AS name FROM content_revisions
    WHERE team_id = $1 AND kind = $2 AND uid = ANY($3::text[]) AND superseded_at IS NULL AND content->>'name' IS NOT NULL`,
  row: { uid: text(), name: text() },
});

/** Returns the present names of the team's contents by UID, except contents that were deleted or have no name. */
export async function readPresentNames(
  db: Queryable,
  teamId: string,
  kind: ContentKind,
  uids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const rows = uids.length === 0 ? [] : await db.query(readPresentNamesOf, [teamId, kind, uids]);
  return new Map(rows.map(({ uid, name }) => [uid, name]));
}

const write = defineStatement({
  name: 'write_acceptance',
  text: `
    INSERT INTO acceptances AS a (user_uid, kind, uid, revision) VALUES ($1, $2, $3, $4)
    ON CONFLICT (user_uid, kind, uid) DO UPDATE SET revision = excluded.revision,
      accepted_at = CASE WHEN a.revision = excluded.revision THEN a.accepted_at ELSE excluded.accepted_at END
    RETURNING accepted_at`,
  row: { accepted_at: timestamp },
});

/**
 * Records that a person accepts a revision. This replaces the acceptance of an earlier revision. Returns the time at which the person first
 * accepted the revision.
 */
export async function writeAcceptance(
  tx: Queryable,
  personUid: string,
  { kind, uid, revision }: ContentRevision,
): Promise<string> {
  const [written] = await tx.query(write, [personUid, kind, uid, revision]);
  if (!written) throw new Error('the acceptance was not written');
  return written.accepted_at;
}
