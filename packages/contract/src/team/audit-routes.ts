import { administrators } from '../wire/access.ts';
import type { Route } from '../wire/route.ts';
import { ListAuditEntriesQuery, ListAuditEntriesResponse } from './audit.ts';

export const auditRoutes = {
  listAuditEntries: {
    method: 'GET',
    path: '/audit-log',
    tag: 'audit_log',
    summary: 'List changes',
    description:
      'Each change of a resource of the team through the API: who, what, before, after, and from where. It also has sign-ins, creates of runs by key, follow-ups, answers, approvals and interrupts of runs. The log holds no secrets and no messages.',
    allow: administrators,
    query: ListAuditEntriesQuery,
    answer: { status: 200, description: 'Newest first', schema: ListAuditEntriesResponse },
    errors: { 400: 'A wrong value, or a cursor of another list' },
  },
} as const satisfies Record<string, Route>;
