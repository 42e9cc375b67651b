import { teamReads } from '../wire/access.ts';
import type { Route } from '../wire/route.ts';
import { SearchQuery, SearchResponse } from './search.ts';

export const searchRoutes = {
  search: {
    method: 'GET',
    path: '/search',
    tag: 'service',
    summary: 'Find things by name or id',
    description: 'Finds things that the caller may list, in the team of the request.',
    allow: teamReads,
    query: SearchQuery,
    answer: { status: 200, description: 'What was found', schema: SearchResponse },
    errors: { 400: 'No words, or a wrong value' },
  },
} as const satisfies Record<string, Route>;
