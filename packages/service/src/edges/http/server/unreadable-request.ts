import type { Socket } from 'node:net';
import { http } from '@runyard/system/node-http';
import { refuse } from '../../../platform/serving/refusal.ts';
import { problemOf } from './problem.ts';
import { startTrace } from './trace.ts';

/** Statuses by `code` of the errors of Node's HTTP parser; all other codes: 400. */
const refusals: Readonly<Record<string, { readonly status: number; readonly detail: string }>> = {
  HPE_HEADER_OVERFLOW: { status: 431, detail: 'The request line and the headers are larger than 16 KB together.' },
  HPE_CHUNK_EXTENSIONS_OVERFLOW: { status: 413, detail: 'The extensions of the chunks are too large.' },
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, detail: 'The request was not sent in time.' },
};

/**
 * Sends a problem document to a client whose bytes Node could not read as a request, and ends the connection. There is neither
 * request nor reply.
 */
export function answerUnreadable(error: Error & { readonly code?: string }, socket: Socket, baseUrl: string): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const { status, detail } = refusals[error.code ?? ''] ?? { status: 400, detail: 'The request is not valid HTTP.' };
  const { traceId } = startTrace(undefined);
  const body = JSON.stringify(problemOf(refuse('invalid_request', { status, detail }), baseUrl, '/', traceId));
  const head = [
    `HTTP/1.1 ${status} ${http.STATUS_CODES[status]}`,
    `x-request-id: ${traceId}`,
    'x-content-type-options: nosniff',
    'cache-control: no-store',
    'content-type: application/problem+json; charset=utf-8',
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
  ];
  // Closes the connection without waiting for a client that continues to send.
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy());
}
