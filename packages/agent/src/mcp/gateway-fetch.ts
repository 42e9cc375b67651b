import type { ServiceConnection } from '../service/connection.ts';
import { type Fetch, modelFetch } from '../service/model-fetch.ts';

/** The longest silence of a server over HTTP, as in the gateway. */
const silenceMs = 610_000;
/** Bytes of one answer. */
const maxAnswerBytes = 16 * 1024 * 1024;

/**
 * Returns a `fetch` for servers over HTTP: through the gateway, with the run token. It opens no stream for unrequested messages,
 * because the list of tools is read once.
 */
export function gatewayFetch(connection: ServiceConnection): Fetch {
  const send = modelFetch(connection, silenceMs, 'waits');
  return async (input, init = {}) => {
    if ((init.method ?? 'GET') === 'GET') return new Response(null, { status: 405 });
    const answer = await send(input, init);
    if (answer.body === null) return answer;
    let size = 0;
    const counted = answer.body.pipeThrough(
      new TransformStream<Uint8Array, Uint8Array>({
        transform(chunk, controller) {
          size += chunk.byteLength;
          if (size > maxAnswerBytes) controller.error(new Error(`the answer is larger than ${maxAnswerBytes} bytes`));
          else controller.enqueue(chunk);
        },
      }),
    );
    return new Response(counted, { status: answer.status, statusText: answer.statusText, headers: answer.headers });
  };
}
