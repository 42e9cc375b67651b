import { maxWaitingContents } from '../limits.ts';
import type { Route } from '../wire/route.ts';
import {
  Acceptance,
  AcceptRequest,
  CountAcceptancesResponse,
  ListAcceptancesQuery,
  ListAcceptancesResponse,
  PreviewAcceptancesResponse,
} from './acceptances.ts';

// Agent keys cannot accept contents. A person must have read an accepted content, but a program in a sandbox may have an agent key.
export const acceptanceRoutes = {
  listAcceptances: {
    method: 'GET',
    path: '/acceptances',
    tag: 'acceptances',
    summary: 'List what waits for acceptance',
    description: `Lists contents whose present revision has texts that the caller has neither written nor accepted: environments, agent identities, schedules, automations, definitions of factories, MCP servers with a command, and pools of self-hosted workers. Also lists conversations of the caller's runs in which texts of others ran, such as follow-ups; at most ${maxWaitingContents}. Each entry has the difference to the revision that the caller accepted before. Runs of the caller that execute these contents have no right that an author of these texts lacks, except rights of the team after another member who holds them has accepted the texts.`,
    allow: { user: 'member' },
    query: ListAcceptancesQuery,
    answer: { status: 200, description: 'Latest change first', schema: ListAcceptancesResponse },
  },
  countAcceptances: {
    method: 'GET',
    path: '/acceptances/count',
    tag: 'acceptances',
    summary: 'Count what waits for acceptance',
    description: 'The number of contents in the list without a filter.',
    allow: { user: 'member' },
    answer: { status: 200, description: 'The number', schema: CountAcceptancesResponse },
  },
  previewAcceptances: {
    method: 'GET',
    path: '/acceptances/preview',
    tag: 'acceptances',
    summary: 'Preview what runs lack',
    description:
      'Returns for the caller, and for administrators for each person, agent identity and agent key of the team: the contents that wait for acceptance, and the schedules and automations whose runs lack rights until then.',
    allow: { user: 'member' },
    answer: { status: 200, description: 'Executors for whom something waits', schema: PreviewAcceptancesResponse },
  },
  accept: {
    method: 'POST',
    path: '/acceptances',
    tag: 'acceptances',
    summary: 'Accept a revision',
    description:
      'Later runs of the caller execute this revision with all rights of the caller. A later revision needs another acceptance. Runs that were created before keep the rights that they have. After the acceptance of a conversation, later turns of its runs have the rights again with which these runs were created.',
    allow: { user: 'member' },
    body: AcceptRequest,
    answer: { status: 200, description: 'Accepted', schema: Acceptance },
    errors: {
      404: 'No such content, or the caller may not see it',
      409: 'Another revision is the present one: read the difference first',
    },
  },
} as const satisfies Record<string, Route>;
