/** Sends requests of tests with node:http: `fetch` takes twice the processor time, and tests send tens of thousands. */
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
  /** Empty for a stream of events that is not read. */
  readonly text: string;
}

const agent = new http.Agent({ keepAlive: true });

/** Sends a request to an `http:` URL and reads its answer. Follows no redirect. */
export async function ask(url: string, asked: Asked): Promise<Answer> {
  return await once(url, asked).catch((error: unknown) => {
    // The server closed the connection while it was idle. Retry only this method, because a request with another method could take effect twice.
    if (error instanceof Closed && asked.method === 'GET') return once(url, asked);
    throw error;
  });
}

/** A connection that an earlier request had used was closed. */
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
