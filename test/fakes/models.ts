/**
 * A fake of four model providers on loopback, each with its real protocol. It gives the answers that the test sets, records the
 * requests, and can simulate faults. The routes of Anthropic, OpenAI and Google have the same paths as at these providers. The route
 * `/local/v1` stands for an OpenAI-compatible endpoint on the user's machine.
 */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { anthropicDialect } from './models/anthropic.ts';
import { googleDialect } from './models/google.ts';
import { type Json, objectOf } from './models/json.ts';
import { openAiChatDialect } from './models/openai-chat.ts';
import { openAiResponsesDialect } from './models/openai-responses.ts';
import { type FakeEnd, sendStream } from './models/send.ts';
import {
  defaultScript,
  defaultUsage,
  type FakeConversation,
  type FakeDialect,
  type FakeMisbehaviour,
  type FakeReply,
  type FakeTurn,
} from './models/turns.ts';

export type { FakeConversation, FakeMisbehaviour, FakeToolCall, FakeTurn } from './models/turns.ts';

/** Keys that the fake accepts. Each is valid only for its own provider. */
export const fakeModelKeys = {
  anthropic: 'sk-ant-fake-0123456789-of-the-operator',
  openai: 'sk-proj-fake-0123456789-of-the-operator',
  google: 'AIza-fake-0123456789-of-the-operator',
  local: 'local-fake-0123456789-of-the-operator',
} as const;

export type FakeProvider = keyof typeof fakeModelKeys;

/** A request as it arrived. */
export interface FakeModelRequest {
  readonly provider: FakeProvider;
  readonly path: string;
  readonly query: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Json;
  readonly conversation: FakeConversation | undefined;
  /** Events sent so far. */
  readonly sent: () => number;
  /** How it ended. */
  readonly end: Promise<FakeEnd>;
}

export type FakeScript = readonly FakeTurn[] | ((conversation: FakeConversation) => FakeTurn);

export interface FakeModels {
  /** `http://127.0.0.1:PORT`. */
  readonly url: string;
  /** Settings with which a service uses this fake for all four providers. */
  readonly env: Readonly<Record<string, string>>;
  readonly requests: readonly FakeModelRequest[];
  /**
   * Sets the answers of the model. `script` is a list of answers, or a function that returns the next answer. In each conversation,
   * the model gives the answers of a list in order, from the first one.
   */
  script(script: FakeScript): void;
  /** Causes this fault in the next `times` requests (default 1) to any provider. */
  misbehave(misbehaviour: FakeMisbehaviour, times?: number): void;
  /** Removes the faults that `misbehave` has planned. */
  forgive(): void;
  /** Continues all streams that the fault `hold` has stopped. */
  release(): void;
  /** Resolves with the `count`th request (1, 2, …) as soon as it has arrived. */
  request(count: number): Promise<FakeModelRequest>;
  /** Ids that `GET …/models` of the local endpoint returns. */
  localModels: string[];
  close(): Promise<void>;
}

interface Route {
  readonly provider: FakeProvider;
  readonly dialect: FakeDialect;
  readonly model?: string;
  /** Whether the request asks for a stream. Only Google's requests say this in the path; for other providers, the body says it. */
  readonly stream?: boolean;
}

function routeOf(path: string): Route | undefined {
  if (path === '/v1/messages') return { provider: 'anthropic', dialect: anthropicDialect };
  if (path === '/v1/responses') return { provider: 'openai', dialect: openAiResponsesDialect };
  if (path === '/v1/chat/completions') return { provider: 'openai', dialect: openAiChatDialect };
  if (path === '/local/v1/chat/completions') return { provider: 'local', dialect: openAiChatDialect };
  const google = /^\/v1beta\/models\/([^/:]+):(streamGenerateContent|generateContent)$/.exec(path);
  if (google?.[1] === undefined) return undefined;
  const stream = google[2] === 'streamGenerateContent';
  return { provider: 'google', dialect: googleDialect, model: decodeURIComponent(google[1]), stream };
}

/** Reads the credential from the header or query parameter that the provider uses. */
function credentialOf(provider: FakeProvider, request: IncomingMessage, url: URL): string | undefined {
  const single = (name: string): string | undefined => request.headers[name]?.toString();
  if (provider === 'anthropic') return single('x-api-key');
  if (provider === 'google') return single('x-goog-api-key') ?? url.searchParams.get('key') ?? undefined;
  return /^Bearer (.+)$/.exec(single('authorization') ?? '')?.[1];
}

const answer = (
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void => {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
};

/** Starts the fake on a free port of 127.0.0.1. */
export async function startFakeModels(): Promise<FakeModels> {
  const requests: FakeModelRequest[] = [];
  const waiting: { count: number; resolve: (request: FakeModelRequest) => void }[] = [];
  const planned: FakeMisbehaviour[] = [];
  let script: FakeScript = defaultScript;
  let released = Promise.withResolvers<void>();
  const localModels = ['fake-local', 'fake-local-small'];

  const turnOf = (conversation: FakeConversation): FakeTurn =>
    typeof script === 'function'
      ? script(conversation)
      : (script[conversation.turn] ?? { text: ['(the script has no more turns)'] });

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const url = new URL(request.url ?? '/', 'http://fake');
    const end = Promise.withResolvers<FakeEnd>();
    let sent = 0;
    let cut = false;
    response.on('close', () => end.resolve(cut ? 'cut' : response.writableFinished ? 'complete' : 'client_gone'));
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    if (request.method === 'GET' && /^\/(local\/)?v1\/models$/.test(url.pathname)) {
      const ids = url.pathname.startsWith('/local') ? localModels : ['gpt-fake'];
      const provider = url.pathname.startsWith('/local') ? 'local' : 'openai';
      if (credentialOf(provider, request, url) !== fakeModelKeys[provider])
        return answer(response, 401, openAiChatDialect.error(401, 'Incorrect API key provided.'));
      return answer(response, 200, {
        object: 'list',
        data: ids.map((id) => ({ id, object: 'model', created: 1, owned_by: 'fake' })),
      });
    }
    const route = request.method === 'POST' ? routeOf(url.pathname) : undefined;
    if (route === undefined)
      return answer(response, 404, { error: { message: `no ${request.method} ${url.pathname} here` } });
    const { dialect, provider } = route;
    const refuse = (status: number, message: string, headers: Record<string, string> = {}): void =>
      answer(response, status, dialect.error(status, message), { ...dialect.headers, ...headers });

    let body: Json = {};
    let conversation: FakeConversation | undefined;
    let fault: string | undefined;
    try {
      body = objectOf(JSON.parse(Buffer.concat(parts).toString('utf8')));
      conversation = dialect.read(body, route.model);
    } catch (error) {
      fault = (error as Error).message;
    }
    const record = {
      provider,
      path: url.pathname,
      query: url.search,
      headers: request.headers,
      body,
      conversation,
      sent: () => sent,
      end: end.promise,
    };
    requests.push(record);
    for (const waiter of waiting.filter((each) => each.count === requests.length)) waiter.resolve(record);

    if (credentialOf(provider, request, url) !== fakeModelKeys[provider]) return refuse(401, 'invalid key');
    if (provider === 'anthropic' && request.headers['anthropic-version'] === undefined) {
      return refuse(400, 'anthropic-version: header is required');
    }
    if (conversation === undefined) return refuse(400, fault ?? 'bad request');

    const turn = turnOf(conversation);
    const misbehaviour = planned.shift() ?? turn.misbehaviour;
    switch (misbehaviour?.kind) {
      case 'silent':
        return;
      case 'redirect':
        response.writeHead(307, { location: misbehaviour.location }).end();
        return;
      case 'status': {
        const { status, retryAfterSeconds, message = `fake error ${status}`, stalls } = misbehaviour;
        if (stalls) {
          response.writeHead(status, dialect.headers).write(JSON.stringify(dialect.error(status, message)));
          return;
        }
        const headers = retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) };
        return refuse(status, message, headers as Record<string, string>);
      }
      default:
    }
    const serial = requests.length;
    const reply: FakeReply = {
      id: `fake_${serial}`,
      model: conversation.model,
      thinking: turn.thinking ?? '',
      text: turn.text ?? [],
      toolCalls: (turn.toolCalls ?? []).map((call, index) => ({ id: `call_${serial}_${index}`, ...call })),
      usage: { ...defaultUsage, ...turn.usage },
      includeUsage: objectOf(body.stream_options).include_usage === true,
    };
    if (!(route.stream ?? body.stream === true)) return answer(response, 200, dialect.whole(reply), dialect.headers);
    cut = misbehaviour?.kind === 'cut';
    await sendStream(response, dialect, reply, misbehaviour, released.promise, () => {
      sent += 1;
    });
  };

  const server = createServer((request, response) => {
    handle(request, response).catch((error: Error) => {
      process.stderr.write(`the fake model failed at ${request.url}: ${error.stack}\n`);
      response.destroy();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  return {
    url,
    env: {
      RUNYARD_ANTHROPIC_API_KEY: fakeModelKeys.anthropic,
      RUNYARD_OPENAI_API_KEY: fakeModelKeys.openai,
      RUNYARD_GOOGLE_API_KEY: fakeModelKeys.google,
      RUNYARD_MODEL_KEY: fakeModelKeys.local,
      RUNYARD_ANTHROPIC_BASE_URL: url,
      RUNYARD_OPENAI_BASE_URL: url,
      RUNYARD_GOOGLE_BASE_URL: url,
      RUNYARD_MODEL_BASE_URL: `${url}/local/v1`,
    },
    requests,
    localModels,
    script: (next) => {
      script = next;
    },
    misbehave: (misbehaviour, times = 1) => {
      for (let each = 0; each < times; each += 1) planned.push(misbehaviour);
    },
    forgive: () => void planned.splice(0),
    release: () => {
      released.resolve();
      released = Promise.withResolvers<void>();
    },
    request: (count) => {
      const arrived = requests[count - 1];
      if (arrived !== undefined) return Promise.resolve(arrived);
      return new Promise((resolve) => waiting.push({ count, resolve }));
    },
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
