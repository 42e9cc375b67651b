/** The search for objects of a team: all kinds that have a page in the dashboard. */
import { z } from 'zod';
import { RunState } from '../runs/states.ts';
import { NonBlank, Text, Timestamp } from '../wire/primitives.ts';

/** Kinds of objects that a search finds, in the order in which the answer lists them. */
export const SearchKind = z
  .enum(['run', 'schedule', 'automation', 'webhook', 'factory', 'environment', 'agent', 'person'])
  .meta({
    id: 'SearchKind',
    description: '`agent`: an agent identity of the team. `person`: a member of the team; agent keys find no people',
  });
export type SearchKind = z.infer<typeof SearchKind>;

/** Query of `GET /search`. */
export const SearchQuery = z.object({
  q: NonBlank.max(500).describe(
    'Words, in any case and order: each must be in the name of the thing, and of runs as for `q` of GET /agent/runs. Or the id of a thing, or an address with ids, such as the address of its page',
  ),
  kind: z.array(SearchKind).optional().describe('Repeat the parameter for several kinds. Default: all'),
  limit: z.int().min(1).max(20).default(5).describe('Most things of each kind'),
});
export type SearchQuery = z.infer<typeof SearchQuery>;

/** An object that a search found. */
export const SearchResult = z
  .object({
    kind: SearchKind,
    uid: Text.describe('Id or UID of the thing'),
    name: z.string().describe('Name of the thing, title of a run'),
    path: z.string().describe('Path of its page in the dashboard'),
    is_id_match: z.boolean().describe('True: `q` has its id'),
    changed_at: Timestamp.describe('When the thing last changed, or when the person joined; RFC 3339 in UTC'),
    state: RunState.optional().describe('Of a run'),
    enabled: z.boolean().optional().describe('Of a schedule, automation or webhook'),
    next_run_at: Timestamp.optional().describe('Of an enabled schedule: when it fires next'),
    factory_uid: z.string().optional().describe('Of an automation or webhook: its factory'),
  })
  .meta({ id: 'SearchResult', description: 'A thing that a search found' });
export type SearchResult = z.infer<typeof SearchResult>;

export const SearchResponse = z
  .object({
    results: z
      .array(SearchResult)
      .describe(
        'Things whose id `q` has first; then by kind, in the order of SearchKind; within a kind the names that begin with `q` first, and the last changed first. Runs are by their last change only',
      ),
  })
  .meta({ id: 'SearchResponse', description: 'What a search found' });
