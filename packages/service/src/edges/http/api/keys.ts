import type { CreateKeyResponse } from '@runyard/contract/keys';
import { maxKeys } from '@runyard/contract/limits';
import { routes } from '@runyard/contract/routes';
import type { FastifyInstance } from 'fastify';
import { isUuid } from '../../../platform/store/database/uuid.ts';
import { createKey, deleteKey, type KeyRefusal, listKeys } from '../../../team/access/key-management/manage.ts';
import { addRoute } from '../server/add-route.ts';
import { answerWithKey } from '../server/answer-with-key.ts';
import type { ServiceDeps } from '../server/deps.ts';
import { invalid, notFound, type Refusal, refuse } from '../server/problem.ts';

function refuseKey(reason: KeyRefusal): Refusal {
  switch (reason) {
    case 'too_many':
      return refuse('conflict', { detail: `A team has at most ${maxKeys} API keys; delete one.` });
    case 'no_such_identity': {
      const message = 'there is no such agent identity in the team. List them with GET /agent/identities';
      return invalid([{ path: 'agent_uid', message }]);
    }
    case 'owner_needed':
      return refuse('not_authorized', { detail: 'agent_uid: the identity acts for users; only owners make its keys.' });
  }
}

/** Registers list, create and delete of API keys. */
export function registerKeyRoutes(app: FastifyInstance, { db }: ServiceDeps): void {
  addRoute(app, routes.listKeys, async ({ principal }) => ({ keys: await listKeys(db, principal) }));

  addRoute(app, routes.createKey, async (call) => {
    const { principal, body } = call;
    return await answerWithKey<CreateKeyResponse, KeyRefusal>(db, call, {
      operation: 'create key',
      work: (tx) => createKey(tx, principal, body),
      refuseFailure: refuseKey,
    });
  });

  addRoute(app, routes.deleteKey, async ({ principal, params }) => {
    const wasThere = isUuid(params.uid) && (await deleteKey(db, principal, params.uid));
    return wasThere ? { success: true as const } : notFound('key');
  });
}
