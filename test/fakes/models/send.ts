import type { ServerResponse } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import type { FakeDialect, FakeMisbehaviour, FakeReply } from './turns.ts';

/**
 * How the answer ended: `complete`: the fake sent all of it. `client_gone`: the client closed the connection. `cut`: the fake closed
 * the connection.
 */
export type FakeEnd = 'complete' | 'client_gone' | 'cut';

/** Resolves when the response can take further data, or when the connection is closed. */
function room(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const go = (): void => {
      response.off('drain', go);
      response.off('close', go);
      resolve();
    };
    response.on('drain', go);
    response.on('close', go);
  });
}

/** Sends the events of `reply`, with the planned fault if there is one. Calls `sent` after each event. */
export async function sendStream(
  response: ServerResponse,
  dialect: FakeDialect,
  reply: FakeReply,
  misbehaviour: FakeMisbehaviour | undefined,
  released: Promise<void>,
  sent: () => void,
): Promise<void> {
  response.writeHead(200, {
    ...dialect.headers,
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-cache',
    ...(misbehaviour?.kind === 'gzip' ? { 'content-encoding': 'gzip' } : {}),
  });
  const events = dialect.stream(reply);
  if (misbehaviour?.kind === 'gzip') {
    response.end(gzipSync(events.join('')));
    return;
  }
  if (misbehaviour?.kind === 'flood') await flood(response, events, misbehaviour.bytes, sent);
  for (const [index, event] of events.entries()) {
    if (response.destroyed) return;
    if (misbehaviour?.kind === 'slow') await pause(misbehaviour.delayMs);
    if (misbehaviour !== undefined && 'afterPieces' in misbehaviour && misbehaviour.afterPieces === index) {
      switch (misbehaviour.kind) {
        case 'cut':
          // Close the connection after the events that are already written, without the end mark of the body.
          response.socket?.destroySoon();
          return;
        case 'hold':
          response.flushHeaders();
          await released;
          break;
        case 'error_event':
          response.end(dialect.errorEvent('Overloaded'));
          return;
        case 'garbage':
          response.write('data: {"not json\n\n: comment\nevent\n\u0000\n\ndata: [1,2\n\n');
          break;
      }
    }
    if (!response.write(event)) await room(response);
    sent();
  }
  response.end();
}

/** Sends the middle one of the events again and again, until `bytes` characters are sent. */
async function flood(response: ServerResponse, events: string[], bytes: number, sent: () => void): Promise<void> {
  const event = events[Math.floor(events.length / 2)] ?? '';
  for (let at = 0; at < bytes && !response.destroyed; at += event.length) {
    if (!response.write(event)) await room(response);
    sent();
  }
}
