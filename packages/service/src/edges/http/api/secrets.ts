import { isAtLeast } from '@runyard/contract/access';
import { maxSecrets } from '@runyard/contract/limits';
import { routes } from '@runyard/contract/routes';
import type { SecretScope } from '@runyard/contract/secrets';
import type { FastifyInstance } from 'fastify';
import { invalid, notFound, refuse } from '../../../platform/serving/refusal.ts';
import type { Principal } from '../../../team/access/keys/principal.ts';
import { deleteSecret, listSecrets, putSecret } from '../../../team/stored-secrets/stored-secrets.ts';
import { faultOfWebhookSecret } from '../../../triggers/webhooks/secrets/team-secret.ts';
import { addRoute } from '../server/add-route.ts';
import type { ServiceDeps } from '../server/deps.ts';

/** Registers list, set and delete of secrets. */
export function registerSecretRoutes(app: FastifyInstance, { db, vault }: ServiceDeps): void {
  addRoute(app, routes.listSecrets, async ({ principal }) => ({ secrets: await listSecrets(db, principal) }));

  addRoute(app, routes.putSecret, async ({ principal, params, body }) => {
    if (body.scope === 'team') {
      const message = await faultOfWebhookSecret(db, principal.teamId, params.name, body.value);
      if (message !== null) return invalid([{ path: 'value', message }]);
    }
    const stored = await db.transaction((tx) => putSecret(tx, vault, principal, { ...body, name: params.name }));
    if (stored !== 'too_many') return stored;
    const owner = body.scope === 'team' ? 'A team' : 'A person';
    return refuse('conflict', { detail: `${owner} has at most ${maxSecrets} secrets; delete one.` });
  });

  const scopesOf = async (principal: Principal, name: string): Promise<SecretScope[]> =>
    (await listSecrets(db, principal)).filter((secret) => secret.name === name).map(({ scope }) => scope);

  addRoute(app, routes.deleteSecret, async ({ principal, params, query }) => {
    const scopes = query.scope ? [query.scope] : await scopesOf(principal, params.name);
    const [scope, other] = scopes;
    if (scope === undefined) return notFound('secret');
    if (other !== undefined) {
      const message = 'is required: there is a personal secret and one of the team with this name';
      return invalid([{ path: 'scope', message }]);
    }
    if (scope === 'team' && !isAtLeast(principal.role, 'admin')) {
      const detail = `Deleting a secret of the team needs the role admin; the key has the role ${principal.role}.`;
      return refuse('not_authorized', { detail });
    }
    const wasThere = await db.transaction((tx) => deleteSecret(tx, principal, params.name, scope));
    return wasThere ? { success: true as const } : notFound('secret');
  });
}
