/** Test support: an endpoint for models that sends any answer that a test sets, even answers that no provider should send. */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface PlainAnswer {
  readonly status?: number;
  readonly type?: string;
  readonly text: string;
}

export interface PlainProvider {
  /** Settings of a service that uses this endpoint for all providers. */
  readonly env: Readonly<Record<string, string>>;
  readonly requests: readonly {
    readonly path: string;
    readonly headers: IncomingHttpHeaders;
    readonly body: Record<string, unknown>;
  }[];
  /** Sets the answer to requests to models. */
  answer(make: (body: Record<string, unknown>) => PlainAnswer): void;
  close(): Promise<void>;
}

/** Returns a streamed answer with these events. */
export const eventStream = (...events: readonly unknown[]): PlainAnswer => ({
  type: 'text/event-stream',
  text: events.map((event) => `data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`).join(''),
});

export const jsonAnswer = (value: unknown, status = 200): PlainAnswer => ({ status, text: JSON.stringify(value) });

export async function startPlainProvider(): Promise<PlainProvider> {
  let make: (body: Record<string, unknown>) => PlainAnswer = () => ({ text: '{}' });
  const requests: { path: string; headers: IncomingHttpHeaders; body: Record<string, unknown> }[] = [];
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const path = request.url ?? '';
    if (path.endsWith('/models')) {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ object: 'list', data: [{ id: 'plain', object: 'model' }] }));
      return;
    }
    const body = JSON.parse(Buffer.concat(parts).toString('utf8')) as Record<string, unknown>;
    requests.push({ path, headers: request.headers, body });
    const { status = 200, type = 'application/json', text } = make(body);
    response.writeHead(status, { 'content-type': type }).end(text);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    env: {
      RUNYARD_ANTHROPIC_API_KEY: 'key-of-anthropic',
      RUNYARD_ANTHROPIC_BASE_URL: url,
      RUNYARD_MODEL_BASE_URL: `${url}/v1`,
    },
    requests,
    answer: (next) => {
      make = next;
    },
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
