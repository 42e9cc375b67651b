import { maxLocatorLength } from '@runyard/contract/limits';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, uuid } from '../../../platform/store/database/statement.ts';

/**
 * Returns the canonical form of a locator: scheme and host in lower case, without default port, fragment and trailing slash. Returns null
 * if the locator is not an http(s) URL. Also returns null if the locator has more than 2,048 characters, as given or after its special
 * characters are encoded. The reason is that the locator is in an index, and PostgreSQL refuses index rows over 2,704 bytes.
 */
export function canonicalUrl(text: string): string | null {
  if (text.length > maxLocatorLength) return null;
  const url = URL.parse(text);
  if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:')) return null;
  url.hash = '';
  const [beforeQuery = '', query] = [url.href.slice(0, url.href.length - url.search.length), url.search];
  const canonical = beforeQuery.replace(/\/+$/, '') + query;
  return canonical.length > maxLocatorLength ? null : canonical;
}

const findNewest = defineStatement({
  name: 'find_run_by_external_reference',
  text: `
    SELECT r.id FROM artifacts a JOIN runs r ON r.id = a.run_id
    WHERE a.team_id = $1 AND a.canonical_url = $2 AND a.artifact_type = 'EXTERNAL_REFERENCE'
    ORDER BY r.created_at DESC, r.id DESC LIMIT 1`,
  row: { id: uuid },
});

/** Returns the newest run of the team that reported the locator; null if no run reported it, or if the text is not a valid locator. */
export async function findRunByExternalReference(
  db: Queryable,
  teamId: string,
  locator: string,
): Promise<string | null> {
  const canonical = canonicalUrl(locator);
  if (canonical === null) return null;
  const [run] = await db.query(findNewest, [teamId, canonical]);
  return run?.id ?? null;
}
