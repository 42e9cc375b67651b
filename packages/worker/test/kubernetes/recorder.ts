/** Forwards the requests of a worker to a real API server, and records the requests and the answers. */
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { Agent, request as send } from 'node:https';
import type { AddressInfo } from 'node:net';
import { bodyOf, type Exchange } from '../../../../test/fakes/cluster.ts';
import type { ControlPlane } from './control-plane.ts';

export interface Recorder extends AsyncDisposable {
  readonly server: string;
  readonly exchanges: readonly Exchange[];
}

/** Starts the recorder. */
export async function startRecorder({ server: target }: ControlPlane): Promise<Recorder> {
  const exchanges: Exchange[] = [];
  const agent = new Agent({ keepAlive: true, rejectUnauthorized: false });
  const server = createServer(async (request, response) => {
    const { method = '', url = '' } = request;
    const body = await bodyOf(request);
    const { host: _, connection: __, 'content-length': ___, ...headers } = request.headers;
    const text = body === undefined ? undefined : JSON.stringify(body);
    const onward = send(`${target}${url}`, {
      agent,
      method,
      headers: { ...headers, ...(text === undefined ? {} : { 'content-length': Buffer.byteLength(text) }) },
    });
    onward.on('error', () => response.destroy());
    const record = async (answered: IncomingMessage): Promise<void> => {
      const chunks: Buffer[] = [];
      for await (const chunk of answered) chunks.push(chunk);
      const said = Buffer.concat(chunks).toString();
      const isJson = answered.headers['content-type']?.includes('json') === true;
      const answer = isJson ? JSON.parse(said) : said;
      exchanges.push({
        method,
        path: url,
        ...(body === undefined ? {} : { body }),
        status: answered.statusCode ?? 0,
        answer,
      });
      response.writeHead(answered.statusCode ?? 502, {
        'content-type': answered.headers['content-type'] ?? 'text/plain',
      });
      response.end(said);
    };
    // Recording fails if the API server stops in the middle of an answer. Then the worker gets a broken answer too.
    onward.on('response', (answered) => void record(answered).catch(() => response.destroy()));
    onward.end(text);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    server: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    exchanges,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      agent.destroy();
    },
  };
}
