/** The part of the search that each domain does for its own things. */
import type { SearchKind, SearchResult } from '@runyard/contract/team/search';
import type { Database } from './store/database/database.ts';

/** The searched text, and the searching person. */
export interface SearchRequest {
  readonly teamId: string;
  /** UID of the searching person; null: an agent searches. */
  readonly personUid: string | null;
  /** The person administers the team. */
  readonly isAdministrator: boolean;
  /** Words with single spaces between; empty: only ids are searched for. */
  readonly text: string;
  /** Ids in the query, in the form of their kinds. Each id may be of any kind. */
  readonly ids: readonly string[];
  readonly limit: number;
}

/** A found thing without its kind. */
export type FoundThing = Omit<SearchResult, 'kind'>;

/** Finds things of one kind, the best first: the things with the given ids, and at most `limit` others. */
export interface Search {
  readonly kind: SearchKind;
  find(db: Database, request: SearchRequest): Promise<FoundThing[]>;
}

/** SQL expressions that select the things to search. */
interface Searched {
  /** FROM clause, with conditions. */
  readonly from: string;
  readonly uid: string;
  readonly name: string;
  readonly changedAt: string;
  /** Further columns to return. */
  readonly more?: string;
}

/**
 * Returns SQL that searches things by name: `$1` is the text, `$2` the ids as text[], `$3` the limit. Names that begin with the text
 * come first. The SQL reads all names, so use it only for things of which a team has a limited number.
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
