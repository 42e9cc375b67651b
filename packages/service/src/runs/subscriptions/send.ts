/** Sends one POST to a URL that a user chose: only to public addresses, bounded in time and size, without redirects. */

import type { LookupAddress } from 'node:dns';
import https from 'node:https';
import type { AddressRules } from '@runyard/system/address-rules';
import { http } from '@runyard/system/node-http';
import { agentFor } from '@runyard/system/outgoing/outgoing';
import { findAddresses, lookupOf, RefusedAddress, type Resolve } from '../../platform/check-address.ts';

export interface SendOptions {
  readonly rules: AddressRules;
  readonly resolve: Resolve;
  /** Time limit for the name look-up, the connection and the answer together. */
  readonly timeoutMs: number;
  /** Ends the request early if it is aborted. */
  readonly signal: AbortSignal;
}

export interface SentRequest {
  readonly url: string;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** The answer, or the reason why there was none. The text reveals nothing about the network of the service. */
export type SendOutcome =
  | { readonly kind: 'answered'; readonly status: number; readonly retryAfter: string | undefined }
  | { readonly kind: 'failed'; readonly error: string };

/** Number of answer bytes that are read and dropped, so that the receiver can finish sending. */
const maxAnswerBytes = 16 * 1024;

function exchange(
  url: URL,
  request: SentRequest,
  addresses: readonly LookupAddress[],
  signal: AbortSignal,
): Promise<SendOutcome> {
  return new Promise((resolve, reject) => {
    const sent = (url.protocol === 'https:' ? https : http).request(url, {
      method: 'POST',
      // Do not reuse the connection of another delivery, because that connection may lead to another address of the same name.
      agent: agentFor(url),
      lookup: lookupOf(addresses),
      headers: { ...request.headers, 'content-length': Buffer.byteLength(request.body) },
      signal,
    });
    let isAnswered = false;
    sent.on('response', (response) => {
      isAnswered = true;
      const { statusCode: status = 0, headers } = response;
      const answered = { kind: 'answered', status, retryAfter: headers['retry-after'] } as const;
      let bytes = 0;
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes >= maxAnswerBytes) response.destroy();
      });
      // Only the status matters, so an error in the rest of the body is ignored.
      response.on('error', () => undefined);
      response.on('close', () => resolve(answered));
    });
    sent.on('error', reject);
    sent.on('close', () => {
      if (!isAnswered) reject(new Error('the connection was closed without an answer'));
    });
    sent.end(request.body);
  });
}

/** Texts for errors, by the `code` of Node's errors. For errors of certificates the code is the name of the error in OpenSSL. */
const reasons: Readonly<Record<string, string>> = {
  ENOTFOUND: 'the host name does not exist',
  EAI_AGAIN: 'the host name could not be looked up',
  ECONNREFUSED: 'the connection was refused',
  ECONNRESET: 'the connection was reset',
  EHOSTUNREACH: 'the host cannot be reached',
  ENETUNREACH: 'the network cannot be reached',
  ETIMEDOUT: 'the connection timed out',
  EPROTO: 'the server does not speak TLS',
  ERR_PROXY_TUNNEL: 'the proxy of HTTPS_PROXY opened no connection',
};

/** Returns the reason why a request has no answer, as a text that reveals nothing about the network of the service. */
export function reasonOf(error: unknown): string {
  if (error instanceof RefusedAddress) return error.message;
  const { code } = (error ?? {}) as { code?: unknown };
  if (typeof code !== 'string') return 'the connection was closed without an answer';
  return reasons[code] ?? `the request failed (${code.slice(0, 60)})`;
}

/** Sends the request. Never throws; the outcome of an abort is `failed`. */
export async function send(request: SentRequest, options: SendOptions): Promise<SendOutcome> {
  const timeout = AbortSignal.timeout(options.timeoutMs);
  const signal = AbortSignal.any([timeout, options.signal]);
  const aborted = Promise.withResolvers<never>();
  const onAbort = () => aborted.reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  // Handle the rejection here, because it would end the process if no caller waits for the promise.
  aborted.promise.catch(() => undefined);
  try {
    signal.throwIfAborted();
    const url = new URL(request.url);
    const addresses = await Promise.race([findAddresses(url, options, signal), aborted.promise]);
    return await exchange(url, request, addresses, signal);
  } catch (error) {
    if (timeout.aborted) return { kind: 'failed', error: `no answer within ${options.timeoutMs / 1000} s` };
    if (options.signal.aborted) return { kind: 'failed', error: 'the service was stopped' };
    return { kind: 'failed', error: reasonOf(error) };
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
