/** Ids in an address that are looked for. */
const maxIds = 5;
/** Further words are ignored, as in the search for runs. */
const maxWords = 10;

const uuid = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;
const uid = /^[A-Za-z0-9]{22}$/;

/**
 * Returns the words and ids of a query. If the query is an address, it has no words. Its path is searched for ids from its end, because the
 * last id names the thing that the page shows.
 */
export function readQuery(q: string): { readonly text: string; readonly ids: string[] } {
  const trimmed = q.trim();
  const address = /^(?:https?:\/\/[^/\s]*)?(\/[^\s?#]*)(?:[?#]\S*)?$/i.exec(trimmed)?.[1];
  const parts = address === undefined ? [trimmed] : address.split('/').reverse();
  const ids = parts.flatMap((part) => (uuid.test(part) ? part.toLowerCase() : uid.test(part) ? part : []));
  const isWord = address === undefined && !uuid.test(trimmed);
  return { text: isWord ? trimmed.split(/\s+/).slice(0, maxWords).join(' ') : '', ids: ids.slice(0, maxIds) };
}
