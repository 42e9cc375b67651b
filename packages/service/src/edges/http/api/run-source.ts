import type { FastifyRequest } from 'fastify';

/**
 * Returns the source of a run that a request creates. The User-Agent identifies the `runyard` command; all other clients are the API.
 */
export const sourceOf = (request: FastifyRequest): 'CLI' | 'API' =>
  request.headers['user-agent']?.startsWith('runyard-cli') ? 'CLI' : 'API';
