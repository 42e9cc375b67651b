import type { FastifyInstance } from 'fastify';
import type { Domain } from '../platform/domain.ts';

/** A domain that also has endpoints which need the request and the reply themselves, such as streams and pages. */
export interface Edge extends Domain {
  /** Registers the endpoints. Called once, before `open`. */
  endpoints?(app: FastifyInstance): Promise<void>;
}
