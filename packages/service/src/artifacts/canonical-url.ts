const maxUrlLength = 2048;

/**
 * The canonical form of a locator: scheme and host in lower case, without default port, fragment and trailing slash.
 * Null where it is no http(s) URL of at most 2,048 characters.
 */
export function canonicalUrl(text: string): string | null {
  if (text.length > maxUrlLength) return null;
  const url = URL.parse(text);
  if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:')) return null;
  url.hash = '';
  const [beforeQuery = '', query] = [url.href.slice(0, url.href.length - url.search.length), url.search];
  return beforeQuery.replace(/\/+$/, '') + query;
}
