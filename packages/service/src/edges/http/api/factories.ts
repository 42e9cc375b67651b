import type { Factory } from '@runyard/contract/factories';
import { maxFactories } from '@runyard/contract/limits';
import { routes } from '@runyard/contract/routes';
import type { FastifyInstance } from 'fastify';
import { answerOnce } from '../../../platform/idempotency/answer-once.ts';
import { once } from '../../../platform/idempotency/once.ts';
import { invalid, notFound, refuse } from '../../../platform/serving/refusal.ts';
import { createFactory, deleteFactory, listFactories, readFactory } from '../../../triggers/factories/factories.ts';
import { addRoute } from '../server/add-route.ts';
import type { ServiceDeps } from '../server/deps.ts';

/** Registers list, create, read and delete of factories. */
export function registerFactoryRoutes(app: FastifyInstance, { db, signing }: ServiceDeps): void {
  addRoute(app, routes.listFactories, async ({ principal, query }) => {
    const page = await listFactories(db, signing, principal.teamId, query);
    return (
      page ?? invalid([{ path: 'cursor', message: 'is not a cursor of this list; send the query of the page before' }])
    );
  });

  addRoute(app, routes.createFactory, async (call) => {
    const { principal, body } = call;
    const outcome = await once<Factory, 'too_many' | 'taken'>(db, call.once, async (tx) => {
      const made = await createFactory(tx, principal, body);
      return typeof made === 'string' ? { kind: 'failed', failure: made } : { kind: 'done', response: made };
    });
    return answerOnce(outcome, (failure) =>
      refuse('conflict', {
        detail:
          failure === 'taken'
            ? `alias: the team has a factory ${body.alias}; choose another alias.`
            : `A team has at most ${maxFactories} factories; delete one.`,
      }),
    );
  });

  addRoute(app, routes.getFactory, async ({ principal, params }) => {
    return (await readFactory(db, principal.teamId, params.factoryUid)) ?? notFound('factory');
  });

  addRoute(app, routes.deleteFactory, async ({ principal, params }) => {
    const wasThere = await deleteFactory(db, principal, params.factoryUid);
    return wasThere ? { success: true as const } : notFound('factory');
  });
}
