import type { ReportShutdown } from '@runyard/contract/agent/agent-protocol';
import type { z } from 'zod';
import { boolean, defineStatement } from '../../../platform/store/database/statement.ts';
import { withoutSecrets } from '../../../team/redaction/agent-text.ts';
import { headOf } from '../../conversations/output.ts';
import type { ExecutionDeps } from '../../executions/deps.ts';
import { endSandboxWithin } from '../../executions/reconcile/sandbox-end.ts';
import { lockAttempt } from '../../executions/run-tokens/attempt.ts';
import type { RunSession } from '../../executions/run-tokens/sessions.ts';

const readWorker = defineStatement({
  name: 'read_whether_worker_is_public',
  text: 'SELECT worker_instance IS NULL AS "isPublic" FROM executions WHERE id = $1',
  row: { isPublic: boolean },
});

/** The reason is stored in the run's row and in its timeline. */
const maxReasonBytes = 2000;

/**
 * Logs the exit of an agent. If its worker is a public one, which does not report the ends of all sandboxes, the execution ends too: where
 * the agent's process has exited, or where the agent leaves after an order. Whoever has the run token can report that, so it does not
 * prove the end of the sandbox: its worker is ordered to end it. Throws `AttemptOver`.
 */
export async function reportExit(
  deps: ExecutionDeps,
  session: RunSession,
  { reason: given, exited = false }: z.infer<typeof ReportShutdown>,
  requestId: string,
): Promise<void> {
  const { runId: run, executionId: execution } = session;
  const reason = headOf(withoutSecrets(deps, session, given), maxReasonBytes);
  deps.log.info({ request_id: requestId, run, execution, reason, exited }, 'agent leaves');
  await deps.db.transaction(async (tx) => {
    const phase = await lockAttempt(tx, session);
    const [worker] = await tx.query(readWorker, [execution]);
    if (!worker?.isPublic || !(exited || phase === 'stopping')) return;
    await endSandboxWithin(deps, tx, execution, {
      kind: 'exited',
      message: exited ? `The program that started the agent reported its exit: ${reason}` : `The agent left: ${reason}`,
      remains: 'unproven',
    });
  });
}
