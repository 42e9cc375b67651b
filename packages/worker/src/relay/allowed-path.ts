/** Paths that a sandbox may request: the agent's endpoints, and the models and repositories behind the gateway. */
const allowedPrefixes = ['/api/v1/harness-support/', '/api/v1/gateway/'] as const;

/** Characters of a URL (RFC 3986) that all servers interpret alike: no backslash, no `#`, no space, no control character. */
const plainTarget = /^[A-Za-z0-9\-._~!$&'()*+,;=:@/%?[\]|"^`{}<>]*$/;

/** An encoded dot, slash, backslash, percent sign or control character: decoding it twice gives another path. */
const trickyEscape = /%(2e|2f|5c|25|7f|[01][0-9a-f])/i;

/**
 * Returns the target to request from the service, or `undefined` if the sandbox must not request it. `target` is from the request
 * line; `basePath` is the part of the service's URL before `/api/v1` (usually empty). Paths that need normalising are refused, so the
 * service sees exactly the bytes that were checked.
 */
export function allowedTarget(target: string, basePath = ''): string | undefined {
  if (target.length > 8192 || !plainTarget.test(target)) return undefined;
  const [whole = ''] = target.split('?', 1);
  const path = basePath !== '' && whole.startsWith(`${basePath}/`) ? whole.slice(basePath.length) : whole;
  if (!allowedPrefixes.some((prefix) => path.startsWith(prefix))) return undefined;
  if (trickyEscape.test(path) || /%(?![0-9a-f]{2})/i.test(path)) return undefined;
  const segments = path.split('/').slice(1);
  const last = segments.length - 1;
  // Servers that know path parameters read `..;x` as `..`.
  const dots = (segment: string): boolean => /^\.{1,2}(;|$)/.test(segment);
  if (segments.some((segment, index) => dots(segment) || (segment === '' && index < last))) return undefined;
  return `${basePath}${path}${target.slice(whole.length)}`;
}
