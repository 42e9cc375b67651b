/** Maximum number of ids that are read from an address. */
const maxIds = 5;
/** Maximum number of words. The search for runs has the same limit. Further words are ignored. */
const maxWords = 10;

const uuid = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;
const uid = /^[A-Za-z0-9]{22}$/;

/**
 * Returns the words and ids of a query. If the query is an address, the result has no words, and the ids are those in the path of the
 * address. The last id of the path comes first, because this id names the thing that the page shows.
 */
export function readQuery(q: string): { readonly text: string; readonly ids: string[] } {
  const trimmed = q.trim();
  const address = /^(?:https?:\/\/[^/\s]*)?(\/[^\s?#]*)(?:[?#]\S*)?$/i.exec(trimmed)?.[1];
  const parts = address === undefined ? [trimmed] : address.split('/').reverse();
  const ids = parts.flatMap((part) => (uuid.test(part) ? part.toLowerCase() : uid.test(part) ? part : []));
  const isWord = address === undefined && !uuid.test(trimmed);
  return { text: isWord ? trimmed.split(/\s+/).slice(0, maxWords).join(' ') : '', ids: ids.slice(0, maxIds) };
}
