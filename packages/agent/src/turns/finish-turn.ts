import type { FinishTask, FinishTaskResponse } from '@runyard/contract/agent/finish-task';
import { ServiceRefusal } from '../service/errors.ts';
import type { TurnsOptions } from './turns-options.ts';

/**
 * Reports the end of a turn. To save requests in a short run, the report includes the last events, and it states whether the workspace
 * is empty. If the service refuses these additions, the events are sent separately.
 */
export async function finishTurn(
  report: FinishTask & { turn: number },
  { client, reporter, saver }: Pick<TurnsOptions, 'client' | 'reporter' | 'saver'>,
): Promise<FinishTaskResponse['next']> {
  const { events, settle } = await reporter.takeRest();
  if (events.length > 0) {
    const isEmpty = saver.isEmpty();
    let acknowledged = 0;
    try {
      const answer = await client.finishTask({
        ...report,
        events,
        ...(isEmpty ? { workspace: 'empty' as const } : {}),
      });
      acknowledged = answer.acknowledged ?? 0;
      // Count the workspace as reported only if the service stored the events of the report. An older service that ignores these events
      // also ignores the workspace.
      if (isEmpty && acknowledged > 0) saver.noteEmpty(report.turn);
      return answer.next;
    } catch (error) {
      if (!(error instanceof ServiceRefusal)) throw error;
    } finally {
      settle(acknowledged);
    }
  }
  await reporter.flush();
  return (await client.finishTask(report)).next;
}
