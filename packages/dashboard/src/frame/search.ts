/** Reads and writes the query of the address. Its members have the same names as in the API. A list is written as a repeated member. */

/** Members of a query, in the form in which screens read and write them. */
export type Search = { readonly [name: string]: string | readonly string[] | undefined };

/** Reads the query of an address. */
export function parseSearch(text: string): Record<string, string | string[]> {
  const search: Record<string, string | string[]> = {};
  for (const [name, value] of new URLSearchParams(text)) {
    const earlier = search[name];
    search[name] = earlier === undefined ? value : [...(Array.isArray(earlier) ? earlier : [earlier]), value];
  }
  return search;
}

/** Returns the query of an address with its `?`; an empty text if there are no members. */
export function writeSearch(search: Record<string, unknown>): string {
  const pairs = Object.entries(search).flatMap(([name, value]): [string, string][] =>
    value === undefined || value === null || value === ''
      ? []
      : Array.isArray(value)
        ? value.map((each) => [name, String(each)])
        : [[name, String(value)]],
  );
  return pairs.length === 0 ? '' : `?${new URLSearchParams(pairs)}`;
}

/** Returns the values of a member as a list. */
export const listOf = (value: string | readonly string[] | undefined): readonly string[] =>
  value === undefined ? [] : typeof value === 'string' ? [value] : value;

/** Returns the first value of a member. */
export const oneOf = (value: string | readonly string[] | undefined): string | undefined => listOf(value)[0];

/** Returns the path, query and fragment of `address`. If the query has no `team`, adds the `team` of the page's current address, if there is one. */
export function inTeam(address: string): string {
  const team = new URLSearchParams(location.search).get('team');
  const url = new URL(address, location.origin);
  if (team !== null && !url.searchParams.has('team')) url.searchParams.set('team', team);
  return url.pathname + url.search + url.hash;
}
