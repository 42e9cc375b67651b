import type { IncomingMessage, ServerResponse } from 'node:http';
import { gatewayErrorHeader } from '@runyard/contract/agent/headers';
import type { ProviderTool } from '@runyard/contract/environments/provider-tool-names';
import type { ModelTarget } from '../../../team/models/models.ts';
import { endpointOf, type ProviderName, providerKinds } from '../../../team/models/providers.ts';
import type { Used } from '../../../team/usage/model-usage.ts';
import { decoded, headersDownwards } from '../headers.ts';
import { type Endpoint, usageReaderOf } from './endpoints.ts';
import { isPage, maxPageBytes, pageAnswer, pageMs } from './page-answer.ts';
import { hasFirstByte, type PassedOn, passOn, readUpTo } from './pass-on.ts';
import { providerError } from './provider-error.ts';
import { maxErrorBytes, sendAdapted } from './send-adapted.ts';
import type { UpstreamResult, Upstreams } from './upstream.ts';
import { usedAtLeast } from './usage/at-least.ts';
import { noTokens } from './usage/counts.ts';
import { openMeter } from './usage/meter.ts';
import { countTools } from './usage/tool-calls.ts';

/** A checked request that the gateway sends to the provider. */
export interface Exchange {
  readonly endpoint: Exclude<Endpoint, { kind: 'models' }>;
  readonly target: ModelTarget;
  readonly request: IncomingMessage;
  readonly query: URLSearchParams;
  readonly body: SentBody;
  /** Number of tokens of the prompt, estimated from the text of the request. */
  readonly promptTokens: number;
  /** Tools of the provider that this request may use outside of the sandbox. */
  readonly tools: ReadonlySet<ProviderTool>;
  /** True: another model can take the request. If the provider fails, the caller gets the failure, and the client gets no answer yet. */
  readonly mayMove?: boolean;
  /** Headers that every answer of the service has. */
  readonly ownHeaders: Readonly<Record<string, string>>;
}

/** The bytes of a request. The bytes are released as soon as the provider has got them, because the answer may take minutes. */
export interface SentBody {
  parts: readonly Buffer[];
  /** The same bytes without `stream_options`. */
  plain?: readonly Buffer[] | undefined;
  /** The body as it arrived, from which the gateway writes the request for another model. */
  original?: Buffer | undefined;
  /** Called after all bytes were released. */
  release(): void;
}

/** The status that the client got, and the usage. Status 499: the client disconnected. Status 502: also set if the answer was cut after its
 * beginning. */
export interface ExchangeResult extends Used {
  /** A text for the operator's log, without credentials and content. */
  readonly fault?: string;
  /**
   * Whether the provider works, as far as this exchange shows. Absent if the exchange shows nothing, for example after an error of the
   * caller.
   */
  readonly health?: 'works' | 'unreachable' | 'fails';
  /** True: the client got no answer, and `body` still has its bytes, so the caller can try another model. Set only if `mayMove` is true. */
  readonly isOpen?: true;
}

/** Headers of the answer if the provider is unreachable. The first header tells client libraries not to try again, because the gateway has
 * already tried for several seconds. The second header tells our own agent the reason. */
const unreachableHeaders = { 'x-should-retry': 'false', [gatewayErrorHeader]: 'resource_unavailable' };

/** Usage of a request that got no answer and is not billed. */
const nothing = { tokens: noTokens, tools: {}, isAnswer: false } as const;

/** Sends the request with the real credential and forwards the answer. Never throws; the answer is complete when it returns. */
export async function exchange(
  upstreams: Upstreams,
  sent: Exchange,
  client: ServerResponse,
  signal: AbortSignal,
): Promise<ExchangeResult> {
  const { target, endpoint } = sent;
  const { provider, upstream } = target;
  const answer = (status: number, message: string, headers: Record<string, string> = {}): void =>
    answerError(client, provider, { status, message, headers: { ...sent.ownHeaders, ...headers } });
  const disconnect = new AbortController();
  const leave = (): void => disconnect.abort();
  client.once('close', leave);
  // If the client has already disconnected, no `close` event follows, so call `leave` here.
  if (client.destroyed) leave();
  try {
    const { result, refusal } = await sendAdapted(upstreams, sent, AbortSignal.any([disconnect.signal, signal]));
    if (sent.mayMove && !disconnect.signal.aborted) {
      const open = await openFault(result, upstreams.timeouts.silenceMs);
      if (open && !disconnect.signal.aborted) return open;
    }
    letGo(sent.body);
    if (result.kind !== 'answer') {
      if (disconnect.signal.aborted) {
        // The provider has the request, and bills the part of the request that it has read. So the prompt counts, even if the client ended
        // the turn early.
        const isSent = result.isSent && endpoint.kind === 'generate';
        return { ...nothing, status: 499, ...(isSent ? { tokens: promptOnly(sent), isAnswer: true } : {}) };
      }
      const health = result.kind === 'unreachable' ? result.kind : 'fails';
      if (result.kind === 'failed') answer(result.status, `the model provider ${result.message}`);
      else answer(result.status, `the model provider at ${endpointOf(upstream)} ${result.message}`, unreachableHeaders);
      return { ...nothing, status: result.status, fault: result.message, health };
    }
    const { response } = result;
    const status = response.statusCode ?? 502;
    const coded = decoded(response);
    if (await isPage(response, refusal)) {
      const read = async () =>
        coded ? await readUpTo(coded.body, { maxBytes: maxPageBytes, maxMs: pageMs }) : Buffer.alloc(0);
      const page = pageAnswer(sent, status, refusal ?? (await read()));
      response.destroy();
      answer(page.status, page.message, status < 500 ? { 'x-should-retry': 'false', ...page.headers } : {});
      const health = status >= 400 && status < 500 ? {} : { health: 'fails' as const };
      return { ...nothing, status: page.status, fault: `the provider answered ${status} with a web page`, ...health };
    }
    if (status < 200 || status > 299 || coded === undefined) {
      const refused = await errorAnswer(sent, status, coded, upstreams.timeouts.silenceMs, refusal);
      response.destroy();
      if (refused.body === undefined) answer(refused.status, refused.message);
      else if (!client.destroyed) {
        client
          .writeHead(refused.status, { ...sent.ownHeaders, ...headersDownwards(response.headers, true) })
          .end(refused.body);
      }
      const health = status >= 500 ? { health: 'fails' as const } : {};
      return { ...nothing, status: refused.status, fault: `the provider answered ${status}`, ...health };
    }
    // From here on the answer is read to its end, even if the client has disconnected.
    client.off('close', leave);
    const counter = sent.tools.size > 0 ? countTools(endpoint.protocol, sent.tools) : undefined;
    const meter =
      endpoint.kind === 'generate'
        ? openMeter(usageReaderOf(endpoint), response.headers['content-type'], counter)
        : undefined;
    client.writeHead(status, { ...sent.ownHeaders, ...headersDownwards(response.headers, coded.changed) });
    // Send the headers now, so that the client gets them before the first piece of the answer.
    client.flushHeaders();
    const how = await passOn(response, coded.body, client, upstreams.timeouts, (bytes) => meter?.push(bytes));
    if (meter === undefined) return { ...nothing, ...endOf(how, status) };
    const tokens = usedAtLeast(meter.counts(), how === 'complete', sent.promptTokens, meter.passedTokens());
    return { tokens, tools: counter?.calls() ?? {}, isAnswer: true, ...endOf(how, status) };
  } finally {
    client.off('close', leave);
  }
}

/** Returns status and health of an exchange whose answer was forwarded. `how`: how the answer ended. */
function endOf(how: PassedOn, status: number): Pick<ExchangeResult, 'status' | 'fault' | 'health'> {
  switch (how) {
    case 'complete':
      return { status, health: 'works' };
    case 'cut':
      return { status: 502, fault: 'the provider broke off', health: 'fails' };
    case 'aborted':
      return { status: 499 };
  }
}

/** Returns the usage of a request that reached the provider but got no answer. */
const promptOnly = ({ promptTokens }: Exchange): Used['tokens'] => ({ ...noTokens, input: promptTokens });

/** Answers with an error of the gateway, unless the client has disconnected. */
export function answerError(
  client: ServerResponse,
  provider: ProviderName,
  {
    status,
    message,
    headers,
  }: { readonly status: number; readonly message: string; readonly headers: Readonly<Record<string, string>> },
): void {
  if (client.destroyed) return;
  const body = JSON.stringify(providerError(provider, status, message));
  client.writeHead(status, { ...headers, 'content-type': 'application/json' }).end(body);
}

/** Releases the bytes of a request. */
export function letGo(body: SentBody): void {
  body.parts = [];
  body.plain = undefined;
  body.original = undefined;
  body.release();
}

/**
 * If the provider failed before the first byte of an answer, returns the failure, because another model can take the request. Otherwise
 * returns null.
 */
async function openFault(result: UpstreamResult, silenceMs: number): Promise<ExchangeResult | null> {
  const fault = (status: number, reason: string, health: 'unreachable' | 'fails'): ExchangeResult => ({
    ...nothing,
    status,
    fault: reason,
    health,
    isOpen: true,
  });
  if (result.kind !== 'answer')
    return fault(result.status, result.message, result.kind === 'unreachable' ? result.kind : 'fails');
  const { response } = result;
  const status = response.statusCode ?? 502;
  if (status >= 500) {
    response.destroy();
    return fault(status, `the provider answered ${status}`, 'fails');
  }
  if (status > 299 || (await hasFirstByte(response, silenceMs))) return null;
  response.destroy();
  return fault(502, 'the provider began an answer and sent nothing', 'fails');
}

/** Converts a provider's error answer, redirect or unreadable answer into the answer for the sandbox. */
async function errorAnswer(
  sent: Exchange,
  status: number,
  coded: ReturnType<typeof decoded>,
  maxMs: number,
  alreadyRead?: Buffer,
): Promise<{ status: number; message: string; body?: Buffer }> {
  const kind = providerKinds[sent.target.provider];
  // Replaces a provider's answer about a wrong provider key. The sandbox would think that the answer is about the run token, and some
  // providers quote a part of the provider key.
  const wrongKey = {
    status: 403,
    message: `the model provider refused the service's credential; an administrator must check ${kind.keySetting}`,
  };
  if (status === 401) return wrongKey;
  if (status >= 300 && status < 400) {
    const message = `the model provider answered with a redirect, which is not followed; an administrator must check ${kind.urlSetting}`;
    return { status: 502, message };
  }
  if (status < 300 || coded === undefined) {
    return { status: 502, message: 'the model provider answered in a content encoding that is not known' };
  }
  const body = alreadyRead ?? (await readUpTo(coded.body, { maxBytes: maxErrorBytes, maxMs }));
  // Google answers 400 with one of these names in place of 401.
  if (status === 400 && body.includes('API_KEY_INVALID')) return wrongKey;
  const key = sent.target.upstream.key;
  if (key === undefined || !body.includes(key)) return { status, message: '', body };
  return { status, message: '', body: Buffer.from(body.toString('utf8').replaceAll(key, '[redacted]')) };
}
