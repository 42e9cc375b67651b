import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { pipeline, type Readable } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib';

/** Headers of the sandbox's request that the gateway forwards to the provider. Headers that describe the sender are not among them. */
const upwards = ['content-type', 'accept', 'user-agent', 'anthropic-version', 'anthropic-beta', 'openai-beta'];

/**
 * Headers of the provider's answer that the gateway forwards to the sandbox. Other headers could reveal the operator's organisation, limits
 * and cookies.
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

/**
 * Returns the bytes of an answer, decompressed if the provider compressed them although the request asks for no compression; undefined if
 * the content coding is unknown.
 */
export function decoded(response: IncomingMessage): { body: Readable; changed: boolean } | undefined {
  const coding = response.headers['content-encoding']?.trim().toLowerCase() ?? 'identity';
  const through = (decoder: Readable & NodeJS.WritableStream): { body: Readable; changed: boolean } => {
    // Errors of both streams reach `decoder`, and the reader of `decoder` handles them.
    pipeline(response, decoder, () => {});
    return { body: decoder, changed: true };
  };
  switch (coding) {
    case 'identity':
    case '':
      return { body: response, changed: false };
    case 'gzip':
    case 'x-gzip':
      return through(createGunzip());
    case 'deflate':
      return through(createInflate());
    case 'br':
      return through(createBrotliDecompress());
    case 'zstd':
      return through(createZstdDecompress());
    default:
      return undefined;
  }
}
