import { maxLocatorLength } from '@runyard/contract/limits';

/**
 * Returns the canonical form of a locator: scheme and host in lower case, without default port, fragment and trailing slash. Null: it
 * is no http(s) URL of at most 2,048 characters, both as given and with special characters encoded. The locator is in an index, and
 * PostgreSQL refuses index rows over 2,704 bytes.
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
