import type { FastifyRequest } from 'fastify';
import { refuse } from '../../../platform/serving/refusal.ts';

/** Throws the refusal of a request whose headers no endpoint accepts: RFC 9112 3.2 (Host), RFC 9110 10.1.1 (Expect). */
export function refuseByHeaders({ raw }: FastifyRequest): void {
  const { host, expect } = raw.headers;
  if (host === undefined && raw.httpVersion === '1.1')
    throw refuse('invalid_request', { detail: 'The request has no Host header.', headers: { connection: 'close' } });
  if (expect !== undefined && !/^100-continue$/i.test(expect.trim()))
    throw refuse('invalid_request', {
      status: 417,
      detail: 'The only expectation that can be met is 100-continue.',
      headers: { connection: 'close' },
    });
}
