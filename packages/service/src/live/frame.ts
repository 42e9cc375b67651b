/** Server-sent events as bytes, https://html.spec.whatwg.org/multipage/server-sent-events.html */
import { endOfStream } from '@runyard/contract/live-events';

/** An event, serialised once for all streams, and where a stream is that was given it. */
export interface Frame<P> {
  readonly at: P;
  readonly bytes: Buffer;
}

/** One event with its id. */
export function eventBytes(id: string, event: { readonly type: string }): Buffer {
  return Buffer.from(`id: ${id}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
}

/** Moves a reader's last id without an event. */
export const idBytes = (id: string): Buffer => Buffer.from(`id: ${id}\n\n`);

/** The comment with which a stream ends of which nothing is missing. */
export const endBytes = Buffer.from(`: ${endOfStream}\n\n`);

/** A comment: a sign of life. */
export const heartbeatBytes = Buffer.from(':\n\n');

/** How long a reader waits before it connects again, milliseconds. */
export const retryBytes = (ms: number): Buffer => Buffer.from(`retry: ${Math.round(ms)}\n\n`);
