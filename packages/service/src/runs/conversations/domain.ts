import type { Domain } from '../../platform/domain.ts';
import { deleteConversations, mergeOldEvents } from './retention.ts';
import { deleteUnusedTitles } from './title.ts';

export const conversationsDomain: Domain = {
  name: 'conversations',
  retention: {
    deleteRunDetail: deleteConversations,
    nightly: [
      { name: 'merged_events', run: mergeOldEvents },
      { name: 'conversation_titles', run: deleteUnusedTitles },
    ],
  },
};
