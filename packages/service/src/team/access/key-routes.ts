import { maxKeys } from '@runyard/contract/limits';
import { routes } from '@runyard/contract/routes';
import { notUsable } from '../../platform/fault.ts';
import { notFound, type Refusal, refuse } from '../../platform/serving/refusal.ts';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import type { Database } from '../../platform/store/database/database.ts';
import { isUuid } from '../../platform/store/database/uuid.ts';
import { createSignInCode, readSignInCode } from './key-management/browser-sessions.ts';
import { createKey, deleteKey, type KeyRefusal, listKeys } from './key-management/manage.ts';
import { serve, serveOnce } from './serve.ts';

function refuseKey(reason: KeyRefusal): Refusal {
  switch (reason) {
    case 'too_many':
      return refuse('conflict', { detail: `A team has at most ${maxKeys} API keys; delete one.` });
    case 'no_such_identity': {
      const { detail } = notUsable('agent_uid', 'agent identity', 'GET /agent/identities');
      return refuse('not_authorized', { detail });
    }
    case 'owner_needed':
      return refuse('not_authorized', {
        detail: 'agent_uid: the identity acts for users; only owners can create its keys.',
      });
    case 'operator_needed':
      return refuse('not_authorized', {
        detail: "kind: a worker key serves the runs of all teams, so only the operator's key can create it.",
      });
  }
}

/** Routes that list, create and delete API keys, and create the one-time codes of sign-in links. */
export const keyRoutes = ({ db }: { readonly db: Database }): readonly ServedRoute[] => [
  serve(routes.listKeys, async ({ principal }) => ({ keys: await listKeys(db, principal) })),

  serveOnce(routes.createKey, {
    keySealedFor: 'create key',
    work: async (tx, { principal, body }) => {
      const made = await createKey(tx, principal, body);
      return typeof made === 'string' ? refuseKey(made) : made;
    },
  }),

  serve(routes.deleteKey, async ({ principal, params }) => {
    const outcome = isUuid(params.uid) ? await deleteKey(db, principal, params.uid) : 'not_found';
    switch (outcome) {
      case 'deleted':
        return { success: true as const };
      case 'not_found':
        return notFound('key');
      case 'above_own':
        return refuse('not_authorized', { detail: 'The key belongs to a person whose role is above yours.' });
      case 'last_key':
        return refuse('conflict', {
          detail:
            "The team could not be managed without it: no owner of the team has another key. Create one first: POST /keys. To replace the operator's key, use bin/runyard keys replace-operator-key on the machine of the service.",
        });
    }
  }),

  serve(routes.createSignInCode, async ({ principal }) => await createSignInCode(db, principal)),

  serve(
    routes.readSignInCode,
    async ({ body }) =>
      (await readSignInCode(db, body.code)) ??
      refuse('not_authorized', {
        detail: 'This sign-in link was used already, or is older than a minute. Make another: bin/runyard open',
      }),
  ),
];
