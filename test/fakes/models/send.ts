import type { ServerResponse } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import type { FakeDialect, FakeMisbehaviour, FakeReply } from './turns.ts';

/** How an exchange ended, from the view of the provider. */
export type FakeEnd = 'complete' | 'client_gone' | 'cut';

/** Resolves when the buffers of the response have room again or the connection is closed. */
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

/** Sends the events of `reply`, with the planned fault if there is one. `sent` is called after each event. */
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
          // Close the connection after the written events, before the end mark of the body.
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

/** Repeats the event in the middle of a turn until `bytes` are sent. */
async function flood(response: ServerResponse, events: string[], bytes: number, sent: () => void): Promise<void> {
  const event = events[Math.floor(events.length / 2)] ?? '';
  for (let at = 0; at < bytes && !response.destroyed; at += event.length) {
    if (!response.write(event)) await room(response);
    sent();
  }
}
