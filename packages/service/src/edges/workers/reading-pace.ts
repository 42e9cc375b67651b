import type { WebSocket } from 'ws';

/** Limits of pending messages and unread answers together. Above one of these limits, the socket is not read. */
const most = 64;
const mostBytes = 1024 * 1024;

/** Stops reading from a socket while too many of its messages are unfinished. */
export interface ReadingPace {
  /** Counts a message of this many bytes until its work has ended. */
  work(done: Promise<unknown>, bytes: number): void;
  /** Sends a text, and counts it until the other end has received it. */
  send(text: string): void;
}

/**
 * Paces the reading of a socket. The socket is not read while the worker sends faster than its messages are handled, or does not read the
 * answers. Without these pauses, messages that are not handled yet and answers that the worker has not read would fill the memory of the service.
 */
export function paceReading(socket: WebSocket): ReadingPace {
  let unfinished = 0;
  let unfinishedBytes = 0;
  /** Counts a message, and returns the function that ends its count. */
  const begin = (bytes: number): (() => void) => {
    unfinished += 1;
    unfinishedBytes += bytes;
    if ((unfinished >= most || unfinishedBytes >= mostBytes) && !socket.isPaused) socket.pause();
    return () => {
      unfinished -= 1;
      unfinishedBytes -= bytes;
      if (unfinished < most / 2 && unfinishedBytes <= mostBytes / 2 && socket.isPaused) socket.resume();
    };
  };
  return {
    work(done, bytes) {
      const end = begin(bytes);
      done.then(end, end);
    },
    send(text) {
      socket.send(text, begin(text.length));
    },
  };
}
