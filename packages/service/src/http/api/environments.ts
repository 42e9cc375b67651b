import type { Environment } from '@runyard/contract/environments';
import { maxEnvironments } from '@runyard/contract/limits';
import { routes } from '@runyard/contract/routes';
import type { FastifyInstance } from 'fastify';
import { isUid } from '../../access/teams/uid.ts';
import {
  createEnvironment,
  deleteEnvironment,
  listEnvironments,
  readEnvironment,
  updateEnvironment,
} from '../../environments/environments.ts';
import { once } from '../../idempotency/once.ts';
import { addRoute } from '../server/add-route.ts';
import type { ServiceDeps } from '../server/deps.ts';
import { notFound, refuse } from '../server/problem.ts';
import { answerOnce } from '../server/repeatable.ts';

/** Registers list, create, read, replace and delete of environments. */
export function registerEnvironmentRoutes(app: FastifyInstance, { db }: ServiceDeps): void {
  addRoute(app, routes.listEnvironments, async ({ query, principal }) => ({
    environments: await listEnvironments(db, principal, query.sort_by),
  }));

  addRoute(app, routes.createEnvironment, async (call) => {
    const outcome = await once<Environment, 'too_many'>(db, call.once, async (tx) => {
      const made = await createEnvironment(tx, call.principal, call.body.config);
      return made === 'too_many' ? { kind: 'failed', failure: made } : { kind: 'done', response: made };
    });
    return answerOnce(outcome, () =>
      refuse('conflict', { detail: `A team has at most ${maxEnvironments} environments; delete one.` }),
    );
  });

  addRoute(app, routes.getEnvironment, async ({ params, principal }) => {
    const environment = isUid(params.uid) && (await readEnvironment(db, principal, params.uid));
    return environment || notFound('environment');
  });

  addRoute(app, routes.updateEnvironment, async ({ params, body, principal }) => {
    const { uid } = params;
    const isThere = isUid(uid) && (await db.transaction((tx) => updateEnvironment(tx, principal, uid, body.config)));
    const environment = isThere && (await readEnvironment(db, principal, params.uid));
    return environment || notFound('environment');
  });

  addRoute(app, routes.deleteEnvironment, async ({ params, principal }) => {
    const { uid } = params;
    const wasThere = isUid(uid) && (await db.transaction((tx) => deleteEnvironment(tx, principal, uid)));
    return wasThere ? { success: true as const } : notFound('environment');
  });
}
