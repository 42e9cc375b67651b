/**
 * Finds pushes whose answer was lost, because the service was killed after it had forwarded the push and before it had recorded the answer.
 */

import type { Database } from '../../../platform/store/database/database.ts';
import { defineStatement, text, uuid } from '../../../platform/store/database/statement.ts';
import { type ServiceSecrets, withoutSecrets } from '../../../team/redaction/agent-text.ts';
import { readGrantedSecrets } from '../../../team/stored-secrets/run-secrets.ts';
import { appendTimelineEvent } from '../../executions/timeline/timeline.ts';
import { isNone } from './read-commands.ts';

/** Wait for a long time, because a push can take long. If an answer arrives even later, it is still recorded. */
const longestPush = '2 hours';
const sweepLimit = 200;

/** Takes whole pushes: the rows of a push were inserted together, so they have the same time. */
const giveUp = defineStatement({
  name: 'give_up_unanswered_pushes',
  text: `
    UPDATE pushed_branches p SET result = 'unknown' FROM (
      SELECT run_id, number FROM pushed_branches
      WHERE result = 'sent' AND created_at < clock_timestamp() - interval '${longestPush}'
      ORDER BY created_at LIMIT ${sweepLimit} FOR UPDATE SKIP LOCKED
    ) late
    WHERE p.run_id = late.run_id AND p.number = late.number
    RETURNING p.run_id, p.execution_id, p.repository, p.branch, p.from_id, p.to_id, p.created_at::text AS sent_at`,
  row: {
    run_id: uuid,
    execution_id: uuid,
    repository: text(),
    branch: text(),
    from_id: text(),
    to_id: text(),
    sent_at: text(),
  },
});

const compare = (a: string, b: string): number => (a < b ? -1 : Number(a > b));

/** Marks pushes without an answer, and shows them in the timelines of their runs. The code host may have applied them. */
export async function giveUpUnanswered({ db, ...service }: ServiceSecrets & { readonly db: Database }): Promise<void> {
  await db.transaction(async (tx) => {
    const rows = (await tx.query(giveUp, [])).toSorted(
      (a, b) => compare(a.run_id, b.run_id) || compare(a.sent_at, b.sent_at),
    );
    const pushes = Object.groupBy(rows, ({ run_id, repository, sent_at }) => `${run_id} ${sent_at} ${repository}`);
    for (const branches of Object.values(pushes)) {
      const [first] = branches ?? [];
      if (!branches || !first) continue;
      const branchItems = branches.map(({ branch, from_id: from, to_id: to }) => ({
        branch,
        ...(isNone(from) ? {} : { from }),
        ...(isNone(to) ? {} : { to }),
        result: 'unknown',
      }));
      const { run_id: runId, execution_id: executionId, repository } = first;
      const grantedSecrets = await readGrantedSecrets(tx, runId);
      const payload = withoutSecrets(service, { grantedSecrets }, { repository, branches: branchItems });
      await appendTimelineEvent(tx, { runId, executionId, type: 'git_push', payload });
    }
  });
}
