/** Sends a request to a provider. If the endpoint refuses `stream_options`, sends the request again without this member. */
import { decoded, headersUpwards, queryUpwards } from '../headers.ts';
import { credentialHeaders } from './credentials.ts';
import type { Exchange } from './exchange.ts';
import { readUpTo } from './pass-on.ts';
import type { UpstreamResult, Upstreams } from './upstream.ts';

/** Time to connect to a provider if another model can take the request. */
const impatientReachMs = 5_000;
/** An error answer of a provider is buffered up to this size, to search the answer for the credential before it is forwarded. */
export const maxErrorBytes = 256 * 1024;
/**
 * For this time, requests to an endpoint that refused `stream_options` omit this member. Then they contain it again, because the endpoint
 * may have been updated.
 */
const plainMs = 60 * 60_000;

/** `refusal`: the body of the error answer, if `sendAdapted` has read the body. */
interface Sent {
  readonly result: UpstreamResult;
  readonly refusal?: Buffer;
}

/**
 * Sends a request. The gateway itself adds `stream_options` to streams of chat completions, to learn their usage. An endpoint that refuses
 * `stream_options` gets the request without this member, and the usage of the request is estimated.
 */
export async function sendAdapted(upstreams: Upstreams, sent: Exchange, signal: AbortSignal): Promise<Sent> {
  const { body, target } = sent;
  const { baseUrl } = target.upstream;
  const isPlain = target.refusesStreamOptions || (upstreams.plainUntil.get(baseUrl) ?? 0) > performance.now();
  if (isPlain && body.plain) {
    body.parts = body.plain;
    body.plain = undefined;
  }
  const result = await sendOnce(upstreams, sent, signal);
  if (result.kind !== 'answer' || body.plain === undefined) return { result };
  const { response } = result;
  const coded = decoded(response);
  if (coded === undefined || (response.statusCode !== 400 && response.statusCode !== 422)) return { result };
  const refusal = await readUpTo(coded.body, { maxBytes: maxErrorBytes, maxMs: upstreams.timeouts.silenceMs });
  if (!/stream_options|include_usage/.test(refusal.toString('latin1'))) return { result, refusal };
  response.destroy();
  upstreams.plainUntil.set(baseUrl, performance.now() + plainMs);
  body.parts = body.plain;
  body.plain = undefined;
  return { result: await sendOnce(upstreams, sent, signal) };
}

function sendOnce(upstreams: Upstreams, sent: Exchange, signal: AbortSignal): Promise<UpstreamResult> {
  const { target, endpoint, body } = sent;
  const { provider, upstream } = target;
  return upstreams.send(
    {
      url: new URL(`${upstream.baseUrl}${endpoint.path}${queryUpwards(sent.query)}`),
      method: 'POST',
      headers: {
        ...headersUpwards(sent.request.headers),
        ...credentialHeaders(provider, upstream),
        'content-type': 'application/json',
        'content-length': String(body.parts.reduce((sum, part) => sum + part.byteLength, 0)),
      },
      body,
      ...(upstream.check ? { check: upstream.check } : {}),
      ...(sent.mayMove ? { reachMs: impatientReachMs } : {}),
    },
    signal,
  );
}
