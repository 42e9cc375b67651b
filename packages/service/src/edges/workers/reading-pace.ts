import type { WebSocket } from 'ws';

/** Limit of pending messages and unread answers together. Above this limit, the socket is not read. */
const most = 64;

/** Stops reading from a socket while too many of its messages are unfinished. */
export interface ReadingPace {
  /** Counts a message until its work has ended. */
  work(done: Promise<unknown>): void;
  /** Sends a text, and counts it until the other end has received it. */
  send(text: string): void;
}

/**
 * Paces the reading of a socket. The socket is not read while the worker sends faster than its messages are handled, or does not read the
 * answers. Without these pauses, messages that are not handled yet and answers that the worker has not read would fill the memory of the service.
 */
export function paceReading(socket: WebSocket): ReadingPace {
  let unfinished = 0;
  const begin = (): void => {
    unfinished += 1;
    if (unfinished >= most && !socket.isPaused) socket.pause();
  };
  const end = (): void => {
    unfinished -= 1;
    if (unfinished < most / 2 && socket.isPaused) socket.resume();
  };
  return {
    work(done) {
      begin();
      done.then(end, end);
    },
    send(text) {
      begin();
      socket.send(text, end);
    },
  };
}
