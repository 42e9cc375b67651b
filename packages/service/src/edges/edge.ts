import type { FastifyInstance } from 'fastify';
import type { Domain } from '../platform/domain.ts';

/** A domain with endpoints that work directly on the HTTP request and reply, such as streams and pages. */
export interface Edge extends Domain {
  /** Registers the endpoints. The service calls this function once, before `open`. */
  endpoints?(app: FastifyInstance): Promise<void>;
}
