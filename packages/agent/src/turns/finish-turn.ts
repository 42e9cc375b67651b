import type { FinishTask, FinishTaskResponse } from '@runyard/contract/agent/finish-task';
import { ServiceRefusal } from '../service/errors.ts';
import type { TurnsOptions } from './turns-options.ts';

/**
 * Reports the end of a turn. The report includes the last events, and says whether the workspace is empty, so that a short run needs few
 * requests. If the service refuses these additions, the events are sent separately.
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
      // A service that does not support events in a report does not support the workspace in a report either.
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
