import type { Domain } from '../../platform/domain.ts';
import { deleteConversations, mergeOldEvents } from './retention.ts';

export const conversationsDomain: Domain = {
  name: 'conversations',
  retention: {
    deleteRunDetail: deleteConversations,
    nightly: [{ name: 'merged_events', run: mergeOldEvents }],
  },
};
