import { maxSavedViews } from '@runyard/contract/limits';
import { routes } from '@runyard/contract/routes';
import type { Domain } from '../../platform/domain.ts';
import { notFound, refuse } from '../../platform/serving/refusal.ts';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import type { Database } from '../../platform/store/database/database.ts';
import { serve, serveOnce } from '../access/serve.ts';
import { createSavedView, deleteSavedView, listSavedViews, updateSavedView } from './saved-views.ts';

/** Routes of the views that a person has saved. */
const savedViewRoutes = ({ db }: { readonly db: Database }): readonly ServedRoute[] => [
  serve(routes.listSavedViews, async ({ principal }) => ({ saved_views: await listSavedViews(db, principal) })),

  serveOnce(routes.createSavedView, {
    work: async (tx, { principal, body }) => {
      const made = await createSavedView(tx, principal, body);
      if (made !== 'too_many') return made;
      return refuse('conflict', { detail: `A person has at most ${maxSavedViews} views in a team; delete one.` });
    },
  }),

  serve(routes.updateSavedView, async ({ principal, params, body }) => {
    const changed = await db.transaction((tx) => updateSavedView(tx, principal, params.viewId, body));
    return changed ?? notFound('view');
  }),

  serve(routes.deleteSavedView, async ({ principal, params }) =>
    (await db.transaction((tx) => deleteSavedView(tx, principal, params.viewId)))
      ? { success: true as const }
      : notFound('view'),
  ),
];

/**
 * Stores views of the dashboard that people have saved. The rows of the views are deleted together with the person's membership in the
 * team.
 */
export const savedViewsDomain = (deps: Parameters<typeof savedViewRoutes>[0]): Domain => ({
  name: 'saved-views',
  routes: () => savedViewRoutes(deps),
});
