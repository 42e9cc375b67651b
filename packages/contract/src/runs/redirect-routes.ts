import { z } from 'zod';
import type { Route } from '../wire/route.ts';
import { ConversationRedirect, SessionRedirect } from './conversations.ts';

const withoutKey =
  'Needs no key, so that a person who opens an old link is redirected before signing in; the target page needs a key.';

export const redirectRoutes = {
  checkSessionRedirect: {
    method: 'GET',
    path: '/agent/sessions/{sessionUuid}/redirect',
    tag: 'conversations',
    summary: 'Find the conversation of an ended session',
    description: `Empty while the session is live, or if it has no conversation. ${withoutKey}`,
    allow: { anyone: 'always' },
    params: z.object({ sessionUuid: z.string().meta({ description: '`session_id` of a run' }) }),
    answer: { status: 200, description: 'Target of the redirect, or an empty object', schema: SessionRedirect },
    errors: { 404: 'No such session' },
  },
  checkConversationRedirect: {
    method: 'GET',
    path: '/agent/conversations/{conversationId}/redirect',
    tag: 'conversations',
    summary: 'Find the live session of a conversation',
    description: `Empty if no session is live. ${withoutKey}`,
    allow: { anyone: 'always' },
    params: z.object({ conversationId: z.string().meta({ description: 'Id of the conversation' }) }),
    answer: { status: 200, description: 'Target of the redirect, or an empty object', schema: ConversationRedirect },
    errors: { 404: 'No such conversation' },
  },
} as const satisfies Record<string, Route>;
