import { routes } from '@runyard/contract/routes';
import { notFound, refuse } from '../../platform/serving/refusal.ts';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import type { Database } from '../../platform/store/database/database.ts';
import { serve } from '../access/serve.ts';
import { accept } from './accept.ts';
import { countWaiting, listWaiting } from './waiting.ts';

/** Routes that list the contents that wait for acceptance, and that accept a content. */
export const acceptanceRoutes = ({ db }: { readonly db: Database }): readonly ServedRoute[] => [
  serve(routes.listAcceptances, async ({ principal, query }) => ({ waiting: await listWaiting(db, principal, query) })),

  serve(routes.countAcceptances, async ({ principal }) => ({ waiting: await countWaiting(db, principal) })),

  serve(routes.accept, async ({ principal, body }) => {
    const outcome = await db.transaction((tx) => accept(tx, principal, body));
    switch (outcome.kind) {
      case 'accepted':
        return outcome.acceptance;
      case 'other_revision':
        return refuse('conflict', {
          detail: `The present revision is ${outcome.revision}, not ${body.revision}. Read the difference with GET /acceptances first.`,
        });
      case 'not_found':
        return notFound('content');
    }
  }),
];
