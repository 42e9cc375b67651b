import type { ApiKey } from '@runyard/contract/keys';
import { maxKeys } from '@runyard/contract/limits';
import { routes } from '@runyard/contract/routes';
import type { FastifyInstance } from 'fastify';
import { createKey, deleteKey, listKeys } from '../../access/keys/manage.ts';
import { seal, unseal } from '../../access/keys/sealed.ts';
import { isClientAttempt, once } from '../../idempotency/once.ts';
import { isUuid } from '../../store/database/uuid.ts';
import { addRoute } from '../server/add-route.ts';
import { bearerToken } from '../server/authorize.ts';
import type { ServiceDeps } from '../server/deps.ts';
import { notFound, Refusal, refuse } from '../server/problem.ts';
import { answerOnce } from '../server/repeatable.ts';

const tooMany = () => refuse('conflict', { detail: `A team has at most ${maxKeys} API keys; delete one.` });

type SealedAnswer = ApiKey & { readonly sealed: ReturnType<typeof seal> };

/** Registers list, create and delete of API keys. */
export function registerKeyRoutes(app: FastifyInstance, { db }: ServiceDeps): void {
  addRoute(app, routes.listKeys, async ({ principal }) => ({ keys: await listKeys(db, principal) }));

  addRoute(app, routes.createKey, async (call) => {
    const { principal, body, request } = call;
    if (!call.once || isClientAttempt(call.once)) {
      const made = await db.transaction(async (tx) => await createKey(tx, principal, body));
      return made === 'too_many' ? tooMany() : made;
    }
    // The answer is kept for repetitions, and with it the raw key: sealed with the caller's own, which is not stored.
    const { authorization = '' } = request.headers;
    const use = `answer to create key, Idempotency-Key ${call.once.key}`;
    const outcome = await once<SealedAnswer, 'too_many'>(db, call.once, async (tx) => {
      const made = await createKey(tx, principal, body);
      if (made === 'too_many') return { kind: 'failed', failure: made };
      const { key, ...shown } = made;
      return { kind: 'done', response: { ...shown, sealed: seal(key, bearerToken(authorization), use) } };
    });
    const answer = answerOnce(outcome, tooMany);
    if (answer instanceof Refusal) return answer;
    const { sealed, ...shown } = answer;
    return { ...shown, key: unseal(sealed, bearerToken(authorization), use) };
  });

  addRoute(app, routes.deleteKey, async ({ principal, params }) => {
    const wasThere = isUuid(params.uid) && (await deleteKey(db, principal, params.uid));
    return wasThere ? { success: true as const } : notFound('key');
  });
}
