/**
 * Sends requests of tests with node:http, because tests send tens of thousands of requests, and `fetch` takes twice as much processor
 * time.
 */
import http from 'node:http';

export interface Asked {
  readonly method: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** True: does not read the body of a stream of events. Default: reads the stream to its end. */
  readonly leavesStream?: true;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** Text of the body. Empty if the body was not read. */
  readonly text: string;
}

const agent = new http.Agent({ keepAlive: true });

/** Sends a request to an `http:` URL and reads its answer. Follows no redirect. */
export async function ask(url: string, asked: Asked): Promise<Answer> {
  return await once(url, asked).catch((error: unknown) => {
    // The server has closed an idle connection, so send the request again. Do this only for GET, because another request could take
    // effect twice.
    if (error instanceof Closed && asked.method === 'GET') return once(url, asked);
    throw error;
  });
}

/** Returns whether the server has closed a connection that an earlier request had used. */
class Closed extends Error {}

const once = (url: string, { method, headers = {}, body, leavesStream }: Asked): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) };
    const sent = http.request(url, { method, agent, headers: { accept: '*/*', ...length, ...headers } }, (answer) => {
      const found = { status: answer.statusCode ?? 0, headers: headersOf(answer) };
      if (leavesStream && found.headers.get('content-type')?.startsWith('text/event-stream')) {
        sent.destroy();
        resolve({ ...found, text: '' });
        return;
      }
      let text = '';
      answer.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
      answer.once('end', () => resolve({ ...found, text })).once('error', reject);
    });
    sent.once('error', (error: NodeJS.ErrnoException) => {
      const isClosed = sent.reusedSocket && error.code === 'ECONNRESET';
      reject(isClosed ? new Closed(error.message, { cause: error }) : error);
    });
    sent.end(body);
  });

function headersOf({ headersDistinct }: http.IncomingMessage): Headers {
  const headers = new Headers();
  for (const [name, values = []] of Object.entries(headersDistinct))
    for (const value of values) headers.append(name, value);
  return headers;
}
