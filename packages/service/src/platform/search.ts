/** The types and the SQL with which each domain searches its own objects. */
import type { SearchKind, SearchResult } from '@runyard/contract/team/search';
import type { Database } from './store/database/database.ts';

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

/** SQL expressions that select the objects to search. */
interface Searched {
  /** The FROM clause and the WHERE clause. */
  readonly from: string;
  readonly uid: string;
  readonly name: string;
  readonly changedAt: string;
  /** Further columns to return. */
  readonly more?: string;
}

/**
 * Returns SQL that searches objects by name: `$1` is the text, `$2` the ids as text[], `$3` the limit. Names that begin with the text
 * come first. The SQL reads the names of all objects, so use it only for kinds of which a team can have only a limited number.
 */
export const searchByName = ({ from, uid, name, changedAt, more }: Searched): string => `
  SELECT * FROM (
    SELECT ${uid} AS uid, ${name} AS name, ${changedAt} AS changed_at, ${uid} = ANY($2::text[]) AS is_id_match${more ? `, ${more}` : ''}
    ${from}
  ) thing
  WHERE is_id_match OR ($1 <> '' AND NOT EXISTS (
    SELECT FROM unnest(string_to_array(lower($1), ' ')) word WHERE strpos(lower(name), word) = 0))
  ORDER BY is_id_match DESC, starts_with(lower(name), lower($1)) DESC, changed_at DESC, uid LIMIT $3`;

/** Returns the parameters for the SQL of `searchByName`. */
export const searchValues = ({ text, ids, limit }: SearchRequest): [string, readonly string[], number] => [
  text,
  ids,
  limit,
];
