/** Forks conversations: a new conversation begins with the messages of another one. */
import { randomUUIDv7 } from 'node:crypto';
import { maxForkedRuns, maxForksOfConversation } from '@runyard/contract/runs/conversations';
import { terminalStates } from '@runyard/contract/runs/run-states';
import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, integer, uuid } from '../../platform/store/database/statement.ts';
import { readConversationRuns } from './read.ts';
import { readTitle, writeTitle } from './title.ts';

/** The conversation to fork. `title`: title of the fork; absent: the title of the conversation. */
export interface ForkRequest {
  readonly teamId: string;
  readonly conversationId: string;
  readonly title?: string | undefined;
}

export type ForkOutcome =
  | { readonly kind: 'forked'; readonly conversationId: string }
  /** 404 */
  | { readonly kind: 'not_found' }
  /** 409: no turn of the conversation has ended. */
  | { readonly kind: 'no_ended_turn' }
  /** 409: the conversation has more than `maxForkedRuns` runs. */
  | { readonly kind: 'too_many_runs' }
  /** 409: the conversation has `maxForksOfConversation` forks. */
  | { readonly kind: 'too_many_forks' };

const countForks = defineStatement({
  name: 'count_forks_of_runs',
  text: 'SELECT count(DISTINCT conversation_id) AS forks FROM forked_runs WHERE run_id = ANY($1::uuid[])',
  row: { forks: integer },
});

/**
 * A turn in progress is left out, so that the fork does not change while the turn continues. A run that ended in the middle of a turn gets no
 * more events of this turn, so all its events are included.
 */
const writeFork = defineStatement({
  name: 'fork_conversation',
  text: `
    INSERT INTO forked_runs (conversation_id, run_id, up_to)
    SELECT $3, p.run_id, p.up_to FROM (
      SELECT f.run_id, f.up_to FROM forked_runs f JOIN runs r ON r.id = f.run_id WHERE f.conversation_id = $2 AND r.team_id = $1
      UNION ALL
      SELECT r.id, (SELECT max(v.seq) FROM conversation_events v
        WHERE v.run_id = r.id AND (r.state IN (${terminalStates.map((state) => `'${state}'`).join(', ')}) OR v.event->>'type' = 'turn_finished'))
      FROM runs r WHERE r.conversation_id = $2 AND r.team_id = $1
    ) p
    WHERE EXISTS (SELECT FROM conversation_events v WHERE v.run_id = p.run_id AND v.seq <= p.up_to AND v.event->>'type' = 'turn_started')
    RETURNING run_id`,
  row: { run_id: uuid },
});

/**
 * Creates a conversation that begins with all ended turns of another conversation. It has no run: a create that names it as its
 * `conversation_id` continues it. The messages stay those of the forked runs, so their texts keep their authors, and they are deleted with
 * these runs.
 */
export async function forkConversation(
  tx: Queryable,
  { teamId, conversationId, title }: ForkRequest,
): Promise<ForkOutcome> {
  const runs = await readConversationRuns(tx, teamId, conversationId);
  if (runs.length === 0) return { kind: 'not_found' };
  if (runs.length > maxForkedRuns) return { kind: 'too_many_runs' };
  const [counted] = await tx.query(countForks, [runs.map(({ id }) => id)]);
  if ((counted?.forks ?? 0) >= maxForksOfConversation) return { kind: 'too_many_forks' };
  const fork = randomUUIDv7();
  const forked = await tx.query(writeFork, [teamId, conversationId, fork]);
  if (forked.length === 0) return { kind: 'no_ended_turn' };
  const named = title ?? (await readTitle(tx, teamId, conversationId));
  if (named !== undefined) await writeTitle(tx, { teamId, conversationId: fork, title: named });
  return { kind: 'forked', conversationId: fork };
}
