/** The types and the SQL with which each domain searches its own objects. */
import type { SearchKind, SearchResult } from '@runyard/contract/team/search';
import type { Database } from './store/database/database.ts';
import { boolean, type Column, defineStatement, type RowOf, text, timestamp } from './store/database/statement.ts';

/** A search: its words, and the person or agent that searches. */
export interface SearchRequest {
  readonly teamId: string;
  /** UID of the person who searches; null: an agent searches. */
  readonly personUid: string | null;
  /** True: the person who searches administers the team. */
  readonly isAdministrator: boolean;
  /** The words to find, separated by single spaces. Empty: only ids are searched for. */
  readonly text: string;
  /** The ids that the query contains. The query does not say to which kind of object an id belongs. */
  readonly ids: readonly string[];
  readonly limit: number;
}

/** A found object. Its kind is missing, because a search finds only one kind. */
export type FoundThing = Omit<SearchResult, 'kind'>;

/** Finds objects of one kind: the objects with the given ids first, then the best matches for the text. */
export interface Search {
  readonly kind: SearchKind;
  find(db: Database, request: SearchRequest): Promise<FoundThing[]>;
}

/** The columns that all searches by name return. */
const columns = { uid: text(), name: text(), changed_at: timestamp, is_id_match: boolean };

type Columns = Readonly<Record<string, Column<unknown>>>;
type FoundRow<More extends Columns> = RowOf<ReturnType<typeof defineStatement<typeof columns & More>>>;

/** The objects that a search by name reads. `from`, `uid`, `name` and `changedAt` are SQL. */
interface NameSearch<More extends Columns> {
  readonly kind: SearchKind;
  /** Name of the statement. */
  readonly statement: string;
  /** The FROM clause and the WHERE clause. The parameters from `$4` on are `values`. */
  readonly from: string;
  readonly uid: string;
  readonly name: string;
  readonly changedAt: string;
  /** Further columns to return. */
  readonly more?: More;
  /** Default: the id of the team. */
  readonly values?: (request: SearchRequest) => readonly unknown[];
  readonly toThing: (found: FoundRow<More>) => FoundThing;
}

/**
 * Makes a search of objects by name. Names that begin with the text come first. The search reads the names of all objects, so use it only
 * for kinds of which a team can have only a limited number. In its SQL, `$1` is the text, `$2` the ids as text[], `$3` the limit.
 */
export function searchByName<const More extends Columns = Record<never, never>>(search: NameSearch<More>): Search {
  const { kind, statement, from, uid, name, changedAt, more, toThing } = search;
  const { values = ({ teamId }) => [teamId] } = search;
  const find = defineStatement({
    name: statement,
    text: `
  SELECT * FROM (
    SELECT ${[`${uid} AS uid`, `${name} AS name`, `${changedAt} AS changed_at`, `${uid} = ANY($2::text[]) AS is_id_match`, ...Object.keys(more ?? {})].join(', ')}
    ${from}
  ) thing
  WHERE is_id_match OR ($1 <> '' AND NOT EXISTS (
    SELECT FROM unnest(string_to_array(lower($1), ' ')) word WHERE strpos(lower(name), word) = 0))
  ORDER BY is_id_match DESC, starts_with(lower(name), lower($1)) DESC, changed_at DESC, uid LIMIT $3`,
    row: { ...columns, ...more } as typeof columns & More,
  });
  return {
    kind,
    find: async (db, request) => {
      const rows = await db.query(find, [request.text, request.ids, request.limit, ...values(request)]);
      return (rows as FoundRow<More>[]).map(toThing);
    },
  };
}
