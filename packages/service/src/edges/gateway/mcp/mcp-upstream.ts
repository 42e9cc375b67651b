import type { IncomingMessage } from 'node:http';
import https from 'node:https';
import type { AddressRules } from '@runyard/system/address-rules';
import { http } from '@runyard/system/node-http';
import { agentFor, whenOpen } from '@runyard/system/outgoing/outgoing';
import { findAddresses, lookupOf, type Resolve } from '../../../platform/check-address.ts';
import { checkUrl } from '../../../platform/check-url.ts';
import { reasonOf } from '../../../runs/subscriptions/send.ts';

export interface McpUpstreamOptions {
  readonly rules: AddressRules;
  /** True if RUNYARD_ALLOW_PRIVATE_NETWORKS names a network. */
  readonly allowsPrivate: boolean;
  readonly resolve: Resolve;
  /** Time until the headers of the answer must have arrived. It is long, because a tool may work for minutes. */
  readonly answerMs: number;
  /** Time until the connection must be open. */
  readonly connectMs: number;
}

export interface McpRequest {
  readonly url: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Buffer;
}

/**
 * `failed`: the reason why there is no answer, as a text for the agent. The text has neither headers nor addresses of the service's
 * network.
 */
export type McpAnswer =
  | { readonly kind: 'answer'; readonly response: IncomingMessage }
  | { readonly kind: 'failed'; readonly message: string };

const maxRedirects = 3;

class NoAnswer extends Error {}

/** Returns the target of a redirect if the redirect keeps the origin, the method and the body. */
function followed(from: URL, { statusCode, headers }: IncomingMessage): URL | undefined {
  if (statusCode !== 307 && statusCode !== 308) return undefined;
  const to = URL.parse(headers.location ?? '', from.href);
  return to?.origin === from.origin && !to.username && !to.password ? to : undefined;
}

/**
 * Sends a request to a URL that a user chose. The request goes only to addresses that the rules allow, and never to another origin, because
 * the headers hold credentials. The address is checked at each request. Aborting `signal` destroys the request and its answer at any time.
 */
export async function sendToMcpServer(
  request: McpRequest,
  options: McpUpstreamOptions,
  signal: AbortSignal,
): Promise<McpAnswer> {
  const fault = checkUrl(request.url, options.rules, options.allowsPrivate);
  if (fault) return { kind: 'failed', message: `its url ${fault.message}` };
  let url = new URL(request.url);
  try {
    for (let hop = 0; ; hop += 1) {
      const response = await exchange(url, request, options, signal);
      const status = response.statusCode ?? 502;
      if (status < 300 || status > 399) return { kind: 'answer', response };
      const next = hop < maxRedirects ? followed(url, response) : undefined;
      response.destroy();
      if (next === undefined)
        return { kind: 'failed', message: 'it redirects to an address that Runyard does not follow' };
      url = next;
    }
  } catch (error) {
    if (error instanceof NoAnswer) return { kind: 'failed', message: error.message };
    return { kind: 'failed', message: reasonOf(error) };
  }
}

async function exchange(
  url: URL,
  { method, headers, body }: McpRequest,
  options: McpUpstreamOptions,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const connecting = AbortSignal.any([signal, AbortSignal.timeout(options.connectMs)]);
  const addresses = await findAddresses(url, options, connecting);
  return await new Promise((resolve, reject) => {
    const sent = (url.protocol === 'https:' ? https : http).request(url, {
      method,
      headers: { ...headers, ...(body ? { 'content-length': body.byteLength } : {}) },
      // Open a new connection for each request. A connection of another run may lead to another address of the same host name.
      agent: agentFor(url),
      lookup: lookupOf(addresses),
      signal,
    });
    const fail = (message: string) => sent.destroy(new NoAnswer(message));
    let timer = setTimeout(() => fail('it did not accept a connection in time'), options.connectMs);
    sent.once('socket', (socket) =>
      whenOpen(socket, () => {
        clearTimeout(timer);
        timer = setTimeout(() => fail('it did not answer in time'), options.answerMs);
      }),
    );
    sent.once('response', (response) => {
      clearTimeout(timer);
      // The body may emit an error before its reader listens for errors.
      response.on('error', () => {});
      resolve(response);
    });
    sent.on('error', (error) => {
      clearTimeout(timer);
      reject(error);
    });
    sent.end(body);
  });
}
