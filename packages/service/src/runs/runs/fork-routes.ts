import { findHarness } from '@runyard/contract/agent/harness-presets/presets';
import { routes } from '@runyard/contract/routes';
import { maxForkedRuns, maxForksOfConversation } from '@runyard/contract/runs/conversations';
import { notFound, refuse } from '../../platform/serving/refusal.ts';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import type { Database } from '../../platform/store/database/database.ts';
import { isUuid } from '../../platform/store/database/uuid.ts';
import { recordChange } from '../../team/access/audit/record.ts';
import { serve, serveOnce } from '../../team/access/serve.ts';
import { forkConversation } from '../conversations/fork.ts';
import { readConversationRuns } from '../conversations/read.ts';
import { readTitle, writeTitle } from '../conversations/title.ts';

const conflict = (detail: string) => refuse('conflict', { detail });

/** Routes that fork and name conversations. */
export const forkRoutes = ({ db }: { readonly db: Database }): readonly ServedRoute[] => [
  serveOnce(routes.forkConversation, {
    work: async (tx, { principal, params: { conversationId }, body }) => {
      const { teamId } = principal;
      if (!isUuid(conversationId)) return notFound('conversation');
      const runs = await readConversationRuns(tx, teamId, conversationId);
      if (runs.length > 0 && runs.every(({ harness }) => findHarness(harness)?.hasOnlyRawOutput))
        return refuse('operation_not_supported', {
          detail: 'The harness gave only raw output, which cannot be forked.',
        });
      const outcome = await forkConversation(tx, { teamId, conversationId, title: body.title ?? undefined });
      switch (outcome.kind) {
        case 'forked':
          await recordChange(tx, principal, {
            action: 'conversation.fork',
            subject: { type: 'conversation', uid: outcome.conversationId },
            after: { forked_from: conversationId },
          });
          return { forked_conversation_id: outcome.conversationId };
        case 'not_found':
          return notFound('conversation');
        case 'no_ended_turn':
          return conflict('No turn of the conversation has ended yet; fork it after the agent has answered.');
        case 'too_many_runs':
          return conflict(`The conversation has more than ${maxForkedRuns} runs.`);
        case 'too_many_forks':
          return conflict(`The conversation has ${maxForksOfConversation} forks already.`);
      }
    },
  }),

  serve(routes.renameConversation, async ({ principal, params: { conversationId }, body: { title } }) => {
    const { teamId } = principal;
    return await db.transaction(async (tx) => {
      const runs = isUuid(conversationId) ? await readConversationRuns(tx, teamId, conversationId) : [];
      if (runs.length === 0) return notFound('conversation');
      const before = await readTitle(tx, teamId, conversationId);
      await writeTitle(tx, { teamId, conversationId, title });
      await recordChange(tx, principal, {
        action: 'conversation.rename',
        subject: { type: 'conversation', uid: conversationId, name: title },
        before: { title: before ?? null },
        after: { title },
      });
      return { title };
    });
  }),
];
