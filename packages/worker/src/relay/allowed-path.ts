/** Where a sandbox may go: what the agent reports to, and the models and repositories behind the gateway. */
const allowedPrefixes = ['/api/v1/harness-support/', '/api/v1/gateway/'] as const;

/** Letters of a URL (RFC 3986) without those that servers read differently: no backslash, no `#`, no space, no control character. */
const plainTarget = /^[A-Za-z0-9\-._~!$&'()*+,;=:@/%?[\]|"^`{}<>]*$/;

/** An encoded dot, slash, backslash, percent sign or control character: a second decoding would make another path of it. */
const trickyEscape = /%(2e|2f|5c|25|7f|[01][0-9a-f])/i;

/**
 * The target to ask the service for, or `undefined` where the sandbox may not go there. `target` is the request line's, `basePath`
 * what the service's own URL has before `/api/v1` (usually nothing). Only plain paths pass, none that needs normalising: what is
 * checked here is byte for byte what the service sees.
 */
export function allowedTarget(target: string, basePath = ''): string | undefined {
  if (target.length > 8192 || !plainTarget.test(target)) return undefined;
  const [whole = ''] = target.split('?', 1);
  const path = basePath !== '' && whole.startsWith(`${basePath}/`) ? whole.slice(basePath.length) : whole;
  if (!allowedPrefixes.some((prefix) => path.startsWith(prefix))) return undefined;
  if (trickyEscape.test(path) || /%(?![0-9a-f]{2})/i.test(path)) return undefined;
  const segments = path.split('/').slice(1);
  const last = segments.length - 1;
  // `..;x` is `..` to servers that know path parameters.
  const dots = (segment: string): boolean => /^\.{1,2}(;|$)/.test(segment);
  if (segments.some((segment, index) => dots(segment) || (segment === '' && index < last))) return undefined;
  return `${basePath}${path}${target.slice(whole.length)}`;
}
