import type { Domain } from '../../platform/domain.ts';
import { deleteConversations } from './delete-events.ts';
import { mergeOldEvents } from './merge-events.ts';

export const conversationsDomain: Domain = {
  name: 'conversations',
  retention: {
    deleteRunDetail: deleteConversations,
    nightly: [{ name: 'merged_events', run: mergeOldEvents }],
  },
};
