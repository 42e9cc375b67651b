import type { FastifyInstance } from 'fastify';
import type { Domain } from '../platform/domain.ts';

/** A domain that may also have endpoints of its own kind, which need request and reply themselves. */
export interface Edge extends Domain {
  /** Registers the endpoints. Called once, before `open`. */
  endpoints?(app: FastifyInstance): Promise<void>;
}
