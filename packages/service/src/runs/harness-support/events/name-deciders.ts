import type { AgentEvent } from '@runyard/contract/runs/agent-events';
import type { Queryable } from '../../../platform/store/database/database.ts';
import type { RunSession } from '../../executions/run-tokens/sessions.ts';
import { readFollowupAuthors } from '../../runs/follow-ups/answered-by.ts';

type Decided = Extract<AgentEvent, { readonly type: 'decided' }>;

/**
 * Returns the events with the author of the follow-up that decided a request, by the record of the service. What the agent says about the
 * author is dropped. Asks nothing if no request was decided by a follow-up.
 */
export async function nameDeciders(
  tx: Queryable,
  session: Pick<RunSession, 'runId' | 'teamId'>,
  events: readonly AgentEvent[],
): Promise<readonly AgentEvent[]> {
  const ids = events.flatMap((event) => (event.type === 'decided' ? (event.follow_up_id ?? []) : []));
  const authors = ids.length === 0 ? new Map() : await readFollowupAuthors(tx, session, ids);
  return events.map((event) => {
    if (event.type !== 'decided') return event;
    const { answered_by: _told, ...decided }: Decided = event;
    const author = authors.get(event.follow_up_id ?? '');
    if (author === undefined) return decided;
    return { ...decided, by: author.type === 'user' ? 'person' : 'agent', answered_by: author };
  });
}
