import { connect, type Socket } from 'node:net';
import { type AnswerReader, answerReader, type WholeAnswer } from './answer-reader.ts';

/** A request whose body and answer are small. */
export interface RelayCall {
  readonly method: string;
  /** Path with its query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
  readonly signal: AbortSignal | undefined;
  /** Timeout: the call fails if the relay sends nothing for this time. */
  readonly idleTimeoutMs: number;
  readonly maxBytes: (status: number) => number;
}

/** Calls over the Unix socket of the worker's relay. */
export interface RelayCalls {
  /** Rejects on connection errors, timeouts and abort. */
  call(call: RelayCall): Promise<WholeAnswer>;
  close(): void;
}

/** Matches text without characters that could end the request line or a header (RFC 9110 section 5.5). */
const plain = /^[\x20-\x7e]*$/;

/**
 * Creates the functions with which a short run sends requests to the relay of Runyard's worker. These functions do not use
 * `node:http`, because each process would have to compile `node:http`, but the compiled code of this file is stored for all processes
 * (`docs/decisions/agent-bundle.md`). Connections are kept for later calls.
 */
export function relayCalls(socketPath: string): RelayCalls {
  const free: Socket[] = [];
  const sockets = new Set<Socket>();

  const open = (): Socket => {
    const socket = connect(socketPath);
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => {
      sockets.delete(socket);
      const index = free.indexOf(socket);
      if (index >= 0) free.splice(index, 1);
    });
    return socket;
  };

  return {
    call: (call) =>
      new Promise((resolve, reject) => {
        call.signal?.throwIfAborted();
        const text = requestText(call);
        const socket = free.pop() ?? open();
        const reader: AnswerReader = answerReader(call.maxBytes);
        const settle = (): void => {
          call.signal?.removeEventListener('abort', abort);
          socket.setTimeout(0);
          for (const [event, listener] of listeners) socket.off(event, listener);
        };
        const fail = (error: Error): void => {
          settle();
          socket.destroy();
          reject(error);
        };
        const abort = (): void => fail(call.signal?.reason);
        const listeners = [
          [
            'data',
            (bytes: Buffer) => {
              let read: ReturnType<AnswerReader['read']>;
              try {
                read = reader.read(bytes);
              } catch (error) {
                return fail(error as Error);
              }
              if (read === undefined) return;
              settle();
              if (read.isReusable) free.push(socket.unref());
              else socket.destroy();
              resolve(read.answer);
            },
          ],
          ['close', () => fail(new Error('the connection closed before the answer was complete'))],
          ['error', fail],
          ['timeout', () => fail(new Error(`no answer for ${call.idleTimeoutMs} ms`))],
        ] as const;
        for (const [event, listener] of listeners) socket.on(event, listener);
        call.signal?.addEventListener('abort', abort, { once: true });
        socket.ref();
        socket.setTimeout(call.idleTimeoutMs);
        socket.write(text);
      }),
    close() {
      for (const socket of sockets) socket.destroy();
    },
  };
}

function requestText({ method, path, headers, body }: RelayCall): string {
  const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) };
  const lines = Object.entries({ ...headers, ...length }).map(([name, value]) => `${name}: ${value}`);
  const head = [`${method} ${path} HTTP/1.1`, ...lines];
  if (path.includes(' ') || !head.every((line) => plain.test(line)))
    throw new Error('a request has a path or header with characters that HTTP does not allow');
  return `${head.join('\r\n')}\r\n\r\n${body ?? ''}`;
}
