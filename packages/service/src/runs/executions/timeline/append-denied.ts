import type { DeniedConnection, DeniedConnections } from '@runyard/contract/egress/denied';
import { deniedReasons } from '@runyard/contract/egress/denied-reasons';
import { maxDeniedShown } from '@runyard/contract/limits';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement } from '../../../platform/store/database/statement.ts';
import { redactorOf, type ServiceSecrets } from '../../../team/redaction/agent-text.ts';
import { readGrantedSecrets } from '../../../team/stored-secrets/run-secrets.ts';
import { appendTimelineEvent } from './append.ts';

/** Skips a number that is stored: a worker repeats a message that was not acknowledged. */
const readNumber = defineStatement({
  name: 'read_denied_connections',
  text: `
    SELECT FROM run_events v JOIN executions e ON e.id = $2 AND e.number = v.execution_number
    WHERE v.run_id = $1 AND v.event_type = 'connection_denied' AND v.payload->'number' = to_jsonb($3::int)`,
  row: {},
});

/**
 * Adds denied connections of a sandbox to the timeline, each number once. The numbers have a limit, so the events have one too. The
 * caller has locked the run's row. Programs of the run choose the names of the hosts, so they are untrusted text.
 */
export async function appendDeniedConnections(
  service: ServiceSecrets,
  tx: Queryable,
  { runId, executionId }: { readonly runId: string; readonly executionId: string },
  { number, connections, total }: DeniedConnections,
): Promise<void> {
  if ((await tx.query(readNumber, [runId, executionId, number])).length > 0) return;
  const redactor = redactorOf(service, { grantedSecrets: await readGrantedSecrets(tx, runId) });
  const shown = ({ host, port, reason, count }: DeniedConnection) => ({
    host: redactor.whole(host),
    port,
    reason,
    message: deniedReasons[reason],
    count,
  });
  const [first] = connections;
  const payload =
    number <= maxDeniedShown && first !== undefined
      ? { number, ...shown(first) }
      : { number, total, connections: connections.map(shown) };
  await appendTimelineEvent(tx, { runId, executionId, type: 'connection_denied', payload });
}
