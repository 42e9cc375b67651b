import type { FastifyReply } from 'fastify';
import { closedSignal } from '../../bodies/closed-signal.ts';

/** Returns a signal that is aborted when the answer was sent or the client has disconnected. */
export const signalOfReply = (reply: FastifyReply): AbortSignal => closedSignal(reply.raw);
