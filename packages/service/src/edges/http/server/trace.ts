import { randomBytes, randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';

/** W3C Trace Context of a request. */
export interface Trace {
  /** 32 hex digits, from the caller's traceparent if it sent one. */
  readonly traceId: string;
  /** 16 hex digits of this request. */
  readonly spanId: string;
}

/** version-traceid-parentid-flags; ids of only zeros are invalid (W3C Trace Context, 3.2.2). */
const traceparent = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-|$)/;

/** Continues an incoming `traceparent`, or starts a new trace. */
export function startTrace(header: string | string[] | undefined): Trace {
  const sentId = typeof header === 'string' ? traceparent.exec(header)?.[1] : undefined;
  return { traceId: sentId ?? randomBytes(16).toString('hex'), spanId: randomBytes(8).toString('hex') };
}

const traces = new WeakMap<IncomingMessage, Trace>();

/** Returns the trace of a request. The first call creates the trace, and later calls return the same trace. */
export function traceOf(request: FastifyRequest | { raw: IncomingMessage }): Trace {
  const existing = traces.get(request.raw);
  if (existing) return existing;
  const trace = startTrace(request.raw.headers.traceparent);
  traces.set(request.raw, trace);
  return trace;
}

/** Returns the caller's request id if it is harmless in a log line, else a new one. */
export function requestId(request: { headers: IncomingMessage['headers'] }): string {
  const id = request.headers['x-request-id'];
  return typeof id === 'string' && /^[A-Za-z0-9._-]{1,64}$/.test(id) ? id : randomUUID();
}
