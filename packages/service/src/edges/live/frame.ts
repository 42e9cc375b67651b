/** Server-sent events as bytes, https://html.spec.whatwg.org/multipage/server-sent-events.html */
import { endOfStream } from '@runyard/contract/runs/run-states';

/** An event, serialised once for all streams, and the position of a stream after this event. */
export interface Frame<P> {
  readonly at: P;
  readonly bytes: Buffer;
}

/** Serialises one event with its id. */
export function eventBytes(id: string, event: { readonly type: string }): Buffer {
  return Buffer.from(`id: ${id}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
}

/** Returns bytes that set the last id of a reader but contain no event. */
export const idBytes = (id: string): Buffer => Buffer.from(`id: ${id}\n\n`);

/** The comment at the end of a complete stream. */
export const endBytes = Buffer.from(`: ${endOfStream}\n\n`);

/** A comment that keeps the connection alive. */
export const heartbeatBytes = Buffer.from(':\n\n');

/** Sets the time that the reader waits before it connects again, milliseconds. */
export const retryBytes = (ms: number): Buffer => Buffer.from(`retry: ${Math.round(ms)}\n\n`);
