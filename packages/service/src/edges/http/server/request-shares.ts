/** Gives each request a share of the requests in progress and of the database connections. */
import type { FastifyInstance } from 'fastify';
import { makePlaces } from '../../../platform/bodies/places.ts';
import { tooBusy } from '../../../platform/serving/refusal.ts';
import { type Caller, workFor } from '../../../platform/store/database/shares.ts';
import { clientOf } from './authorize.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Names the caller of the request once it is known. Throws the refusal of a caller or team with too many requests in progress. */
    nameCaller: (caller: Caller) => void;
  }
}

/**
 * Gives each request the shares of its address and, once they are known, those of its caller and team. `most` is the largest number of
 * connections, and so of requests in progress. A team has at most three quarters of them in progress, a caller half, and an address
 * without a key a quarter.
 */
export function shareRequests(app: FastifyInstance, most: number): void {
  const part = (of: number): number => Math.max(1, Math.floor(most * of));
  const addresses = makePlaces(part(1 / 4));
  const callers = makePlaces(part(1 / 2));
  const teams = makePlaces(part(3 / 4));
  app.addHook('onRequest', (request, reply, done) => {
    const { address } = clientOf(request);
    const leaveAddress = addresses.enter(address);
    if (!leaveAddress) return done(tooBusy('This address has too many requests without a key in progress.'));
    workFor({ team: null, id: address }, (name, end) => {
      const leaves = [leaveAddress, end];
      let isOver = false;
      request.nameCaller = (caller) => {
        // The client may have disconnected while its key was looked up.
        if (isOver) return;
        name(caller);
        leaveAddress();
        const leaveCaller = callers.enter(caller.id);
        if (!leaveCaller) throw tooBusy('This caller has too many requests in progress.');
        leaves.push(leaveCaller);
        const leaveTeam = teams.enter(caller.team ?? '');
        if (!leaveTeam) throw tooBusy('The team of this caller has too many requests in progress.');
        leaves.push(leaveTeam);
      };
      const { raw } = reply;
      raw.once('close', () => {
        isOver = true;
        for (const leave of leaves) leave();
      });
      done();
    });
  });
}
