/**
 * Sends and receives messages between a worker and a supervisor: one JSON text on each line, over a Unix socket that only the worker's
 * user can open.
 */
import type { Socket } from 'node:net';

/** Maximum number of characters of a message. The limit is large, because a message may contain the environment of an agent. */
const longestLine = 16 * 1024 * 1024;

export interface LineHandlers<In> {
  message(message: In): void;
  /** Called once, when the connection is closed for any reason. */
  closed(): void;
}

export interface Lines<Out, In> {
  send(message: Out): void;
  /** Ends the connection. Calls `then` when all messages were sent. */
  close(then?: () => void): void;
  /** Cuts the connection at once. */
  destroy(): void;
  /** Keeps the messages that arrive from now on until `handle` is called. */
  hold(): void;
  /** Replaces the handlers for the messages that arrive from now on, and for the end of the connection. */
  handle(handlers: LineHandlers<In>): void;
}

/** Reads and writes messages on a socket. Both sides are Runyard programs that have proved their identity, so messages have no schema. */
export function openLines<Out, In>(socket: Socket, first: LineHandlers<In>): Lines<Out, In> {
  let handlers: LineHandlers<In> | undefined = first;
  let text = '';
  let isClosed = false;
  const deliver = (): void => {
    while (handlers !== undefined) {
      const end = text.indexOf('\n');
      if (end < 0) break;
      const line = text.slice(0, end);
      text = text.slice(end + 1);
      let message: In;
      try {
        message = JSON.parse(line);
      } catch {
        return void socket.destroy();
      }
      handlers.message(message);
    }
    if (isClosed) handlers?.closed();
    else if (text.length > longestLine) socket.destroy();
  };
  socket.setEncoding('utf8');
  // Errors need no handling, because the event `close` follows each error.
  socket.on('error', () => {});
  socket.on('close', () => {
    isClosed = true;
    deliver();
  });
  socket.on('data', (chunk: string) => {
    text += chunk;
    deliver();
  });
  return {
    send(message) {
      if (socket.writable) socket.write(`${JSON.stringify(message)}\n`);
    },
    close: (then) => void socket.end(then),
    destroy: () => void socket.destroy(),
    hold() {
      handlers = undefined;
    },
    handle(next) {
      handlers = next;
      deliver();
    },
  };
}
