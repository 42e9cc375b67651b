import type { CodeHostCredential } from '@runyard/contract/code-hosts';
import { maxCodeHostCredentials } from '@runyard/contract/limits';
import { routes } from '@runyard/contract/routes';
import type { FastifyInstance } from 'fastify';
import { answerOnce } from '../../../platform/idempotency/answer-once.ts';
import { once } from '../../../platform/idempotency/once.ts';
import { invalid, notFound, refuse } from '../../../platform/serving/refusal.ts';
import { isUuid } from '../../../platform/store/database/uuid.ts';
import { readAppKey } from '../../../team/code-hosts/app-token.ts';
import {
  createCodeHostCredential,
  deleteCodeHostCredential,
  listCodeHostCredentials,
} from '../../../team/code-hosts/records.ts';
import { onlyHost } from '../../../team/code-hosts/url.ts';
import { addRoute } from '../server/add-route.ts';
import type { ServiceDeps } from '../server/deps.ts';

const refusals = {
  taken: 'There is a credential for this host and owner already; delete it first.',
  too_many: `A team, and each person in it, has at most ${maxCodeHostCredentials} credentials of code hosts; delete one.`,
} as const;

/** Registers list, create and delete of credentials of code hosts. */
export function registerCodeHostRoutes(app: FastifyInstance, { db, vault, settings }: ServiceDeps): void {
  /** Null: the owner is in the host name, so hosts differ. */
  const usual = onlyHost(settings.RUNYARD_CODE_HOST_URL);

  addRoute(app, routes.listCodeHostCredentials, async ({ principal }) => ({
    credentials: await listCodeHostCredentials(db, principal),
  }));

  addRoute(app, routes.createCodeHostCredential, async (call) => {
    const { principal, body } = call;
    const host = body.host?.toLowerCase() ?? usual;
    if (host === null) {
      const message = 'is required here, because RUNYARD_CODE_HOST_URL has the owner in its host name';
      return invalid([{ path: 'host', message }]);
    }
    if (usual !== null && host !== usual) {
      const message = `must be ${usual} or absent: this service clones from there only (RUNYARD_CODE_HOST_URL)`;
      return invalid([{ path: 'host', message }]);
    }
    const key = body.private_key === undefined ? undefined : readAppKey(body.private_key);
    if (typeof key === 'string') return invalid([{ path: 'private_key', message: key }]);
    const outcome = await once<CodeHostCredential, keyof typeof refusals>(db, call.once, async (tx) => {
      const made = await createCodeHostCredential(tx, vault, principal, { ...body, host });
      return typeof made === 'string' ? { kind: 'failed', failure: made } : { kind: 'done', response: made };
    });
    return answerOnce(outcome, (failure) => refuse('conflict', { detail: refusals[failure] }));
  });

  addRoute(app, routes.deleteCodeHostCredential, async ({ principal, params }) => {
    const { credentialId } = params;
    const wasThere =
      isUuid(credentialId) && (await db.transaction((tx) => deleteCodeHostCredential(tx, principal, credentialId)));
    return wasThere ? { success: true as const } : notFound('credential');
  });
}
