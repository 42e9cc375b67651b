/**
 * Returns whether a `Prefer` header asks for `handling=strict` (RFC 7240, 4.4). Of several `handling` preferences the first one
 * counts (RFC 7240, 2).
 */
export function prefersStrict(header: string | string[] | undefined): boolean {
  const preferences = [header ?? []].flat().flatMap((line) => line.slice(0, 1000).split(','));
  const handling = preferences
    .map((preference) => /^\s*handling\s*=\s*"?([a-z]+)"?\s*(;|$)/i.exec(preference)?.[1])
    .find((value) => value !== undefined);
  return handling?.toLowerCase() === 'strict';
}
