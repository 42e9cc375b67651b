import type { IncomingHttpHeaders } from 'node:http';

/** Headers of the sandbox that reach the provider. They describe the request, not its sender. */
const upwards = ['content-type', 'accept', 'user-agent', 'anthropic-version', 'anthropic-beta', 'openai-beta'];

/**
 * Headers of the provider that reach the sandbox. They describe the answer, and when to retry. The others reveal the operator's
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

/** Returns headers for the provider, without its credential. They request no compression, because the meter reads the answer. */
export function headersUpwards(headers: IncomingHttpHeaders): Record<string, string> {
  return { ...pick(headers, upwards), 'accept-encoding': 'identity' };
}

/** Returns headers for the sandbox. `decoded`: the body was decompressed, so its length has changed. */
export function headersDownwards(headers: IncomingHttpHeaders, decoded: boolean): Record<string, string> {
  const picked = pick(headers, downwards);
  if (decoded) delete picked['content-length'];
  return picked;
}

/** Returns the query parameters for the provider, without `key`, which is a run token. */
export function queryUpwards(query: URLSearchParams): string {
  const parameters = new URLSearchParams();
  for (const name of ['alt', 'beta']) {
    const value = query.get(name);
    if (value !== null) parameters.set(name, value);
  }
  return parameters.size === 0 ? '' : `?${parameters}`;
}
