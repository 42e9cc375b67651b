import type { IncomingHttpHeaders } from 'node:http';

/** Of the sandbox's headers these reach the provider: what says how to read the request, nothing that says who asks. */
const upwards = ['content-type', 'accept', 'user-agent', 'anthropic-version', 'anthropic-beta', 'openai-beta'];

/**
 * The headers of the provider that reach the sandbox: how to read the answer and when to retry. The others reveal the operator's
 * organisation, limits and cookies.
 */
const downwards = [
  'content-type',
  'content-length',
  'cache-control',
  'retry-after',
  'retry-after-ms',
  'x-should-retry',
];

const pick = (headers: IncomingHttpHeaders, names: readonly string[]): Record<string, string> => {
  const picked: Record<string, string> = {};
  for (const name of names) {
    const value = headers[name];
    if (typeof value === 'string') picked[name] = value;
  }
  return picked;
};

/** Headers for the provider, without its credential. Compression is not asked for: the meter reads the answer as it passes. */
export function headersUpwards(headers: IncomingHttpHeaders): Record<string, string> {
  return { ...pick(headers, upwards), 'accept-encoding': 'identity' };
}

/** Headers for the sandbox. `decoded`: the body was decompressed, so that its length is another one. */
export function headersDownwards(headers: IncomingHttpHeaders, decoded: boolean): Record<string, string> {
  const picked = pick(headers, downwards);
  if (decoded) delete picked['content-length'];
  return picked;
}

/** Query parameters that reach the provider; `key` is a run token and does not. */
export function queryUpwards(query: URLSearchParams): string {
  const kept = new URLSearchParams();
  for (const name of ['alt', 'beta']) {
    const value = query.get(name);
    if (value !== null) kept.set(name, value);
  }
  return kept.size === 0 ? '' : `?${kept}`;
}
