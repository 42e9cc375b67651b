import { maxSecrets } from '@runyard/contract/limits';
import { routes } from '@runyard/contract/routes';
import type { SecretScope } from '@runyard/contract/secrets/secrets';
import { isAtLeast } from '@runyard/contract/wire/access';
import type { Vault } from '../../platform/secrets/vault.ts';
import { invalid, notFound, refuse } from '../../platform/serving/refusal.ts';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import type { Database, Queryable } from '../../platform/store/database/database.ts';
import type { Principal } from '../access/keys/principal.ts';
import { serve } from '../access/serve.ts';
import { deleteSecret, listSecrets, putSecret } from './stored-secrets.ts';

/**
 * Returns the reason why a secret of the team cannot have the value, because a webhook that uses the secret needs another form; null if it
 * can.
 */
export type FaultOfTeamSecret = (db: Queryable, teamId: string, name: string, value: string) => Promise<string | null>;

const scopesOf = async (db: Queryable, principal: Principal, name: string): Promise<SecretScope[]> =>
  (await listSecrets(db, principal)).filter((secret) => secret.name === name).map(({ scope }) => scope);

/** Routes that list, set and delete secrets. */
export const secretRoutes = (
  { db, vault }: { readonly db: Database; readonly vault: Vault },
  faultOfTeamSecret: FaultOfTeamSecret,
): readonly ServedRoute[] => [
  serve(routes.listSecrets, async ({ principal }) => ({ secrets: await listSecrets(db, principal) })),

  serve(routes.putSecret, async ({ principal, params, body }) => {
    if (body.scope === 'team') {
      const message = await faultOfTeamSecret(db, principal.teamId, params.name, body.value);
      if (message !== null) return invalid([{ path: 'value', message }]);
    }
    const stored = await db.transaction((tx) => putSecret(tx, vault, principal, { ...body, name: params.name }));
    if (stored !== 'too_many') return stored;
    const owner = body.scope === 'team' ? 'A team' : 'A person';
    return refuse('conflict', { detail: `${owner} has at most ${maxSecrets} secrets; delete one.` });
  }),

  serve(routes.deleteSecret, async ({ principal, params, query }) => {
    const scopes = query.scope ? [query.scope] : await scopesOf(db, principal, params.name);
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
  }),
];
