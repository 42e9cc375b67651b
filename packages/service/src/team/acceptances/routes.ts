import { maxWaitingContents } from '@runyard/contract/limits';
import { routes } from '@runyard/contract/routes';
import { notFound, refuse } from '../../platform/serving/refusal.ts';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import type { Database } from '../../platform/store/database/database.ts';
import type { Principal } from '../access/keys/principal.ts';
import { serve } from '../access/serve.ts';
import { accept } from './accept.ts';
import { countWaiting, hasPersonalRights, listWaiting } from './waiting.ts';
import { type AcceptableConversations, listAllWaiting } from './waiting-all.ts';

/** Routes that list the contents that wait for acceptance, and that accept a content. */
export const acceptanceRoutes = ({
  db,
  conversations,
}: {
  readonly db: Database;
  readonly conversations: AcceptableConversations;
}): readonly ServedRoute[] => {
  const listConversations = async (principal: Principal, uid?: string) => {
    const hasPersonal = await hasPersonalRights(db, principal.teamId, principal.creator.uid);
    return await conversations.list(db, principal, { uid, hasPersonal });
  };

  return [
    serve(routes.listAcceptances, async ({ principal, query }) => {
      const { kind, uid } = query;
      if (kind === undefined && uid === undefined)
        return { waiting: await listAllWaiting(db, conversations, principal, { isBrief: false }) };
      const stored = kind === 'conversation' ? [] : await listWaiting(db, principal, { kind, uid });
      const written = kind === 'conversation' ? await listConversations(principal, uid) : [];
      const all = [...stored, ...written].sort((a, b) => (a.written_at < b.written_at ? 1 : -1));
      return { waiting: all.slice(0, maxWaitingContents) };
    }),

    serve(routes.countAcceptances, async ({ principal }) => {
      const written = await listConversations(principal);
      const waiting = (await countWaiting(db, principal)) + written.length;
      return { waiting: Math.min(waiting, maxWaitingContents) };
    }),

    serve(routes.accept, async ({ principal, body }) => {
      const { kind } = body;
      const outcome = await db.transaction((tx) =>
        kind === 'conversation' ? conversations.accept(tx, principal, body) : accept(tx, principal, { ...body, kind }),
      );
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
};
