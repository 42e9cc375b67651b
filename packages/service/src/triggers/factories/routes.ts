import { maxFactories } from '@runyard/contract/limits';
import { routes } from '@runyard/contract/routes';
import type { Signer } from '../../platform/secrets/signer.ts';
import { notFound, refuse, wrongCursor } from '../../platform/serving/refusal.ts';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import type { Database } from '../../platform/store/database/database.ts';
import { serve, serveOnce } from '../../team/access/serve.ts';
import { createFactory, deleteFactory, listFactories, readFactory } from './factories.ts';

/** List, create, read and delete of factories. */
export const factoryRoutes = ({
  db,
  signing,
}: {
  readonly db: Database;
  readonly signing: Signer;
}): readonly ServedRoute[] => [
  serve(
    routes.listFactories,
    async ({ principal, query }) => (await listFactories(db, signing, principal.teamId, query)) ?? wrongCursor(),
  ),

  serveOnce(routes.createFactory, {
    work: async (tx, { principal, body }) => {
      const made = await createFactory(tx, principal, body);
      if (made === 'taken')
        return refuse('conflict', { detail: `alias: the team has a factory ${body.alias}; choose another alias.` });
      if (made === 'too_many')
        return refuse('conflict', { detail: `A team has at most ${maxFactories} factories; delete one.` });
      return made;
    },
  }),

  serve(routes.getFactory, async ({ principal, params }) => {
    return (await readFactory(db, principal.teamId, params.factoryUid)) ?? notFound('factory');
  }),

  serve(routes.deleteFactory, async ({ principal, params }) => {
    const wasThere = await deleteFactory(db, principal, params.factoryUid);
    return wasThere ? { success: true as const } : notFound('factory');
  }),
];
