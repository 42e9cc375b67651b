import type { FastifyRequest } from 'fastify';

/** Returns the source of a run that a request creates. Our CLI says so in its User-Agent; everyone else is the API. */
export const sourceOf = (request: FastifyRequest): 'CLI' | 'API' =>
  request.headers['user-agent']?.startsWith('runyard-cli') ? 'CLI' : 'API';
