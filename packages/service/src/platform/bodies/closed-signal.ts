import type { ServerResponse } from 'node:http';

/** Returns a signal that is aborted when the answer was sent or the client has disconnected. */
export function closedSignal(response: ServerResponse): AbortSignal {
  const closed = new AbortController();
  response.once('close', () => closed.abort());
  // A client that disconnected before sends no `close` event any more.
  if (response.destroyed) closed.abort();
  return closed.signal;
}
