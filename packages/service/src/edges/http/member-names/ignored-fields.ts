/** Members that one header names. */
const maxNamed = 20;
const maxPathLength = 100;

/** Returns a String of RFC 9651, 3.3.3; what is not printable ASCII makes it a Display String (3.3.8). */
function structured(text: string): string {
  if (/^[\x20-\x7e]*$/.test(text)) return `"${text.replaceAll(/["\\]/g, '\\$&')}"`;
  const encoded = encodeURIComponent(text.toWellFormed()).replaceAll(/%[0-9A-F]{2}/g, (octet) => octet.toLowerCase());
  return `%"${encoded}"`;
}

/**
 * Returns the value of `X-Ignored-Fields`: a List of Strings (RFC 9651), each the path of a member that the service does not
 * know. Long paths are cut. Above 20 members, the token `more` is the last item.
 */
export function ignoredFields(paths: readonly string[]): string {
  const named = paths.slice(0, maxNamed).map((path) => structured(path.slice(0, maxPathLength)));
  return [...named, ...(paths.length > maxNamed ? ['more'] : [])].join(', ');
}
