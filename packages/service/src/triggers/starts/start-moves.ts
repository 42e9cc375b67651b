/** Starts the automations that a move of a factory's task to another stage matches. */
import { Trigger } from '@runyard/contract/factories/files/triggers';
import { maxStartsOfTask } from '@runyard/contract/limits';
import type { Matcher } from '@runyard/contract/webhooks/github-events';
import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, json, nullable, text } from '../../platform/store/database/statement.ts';
import type { AutomationRow } from '../automations/automation-row.ts';
import { laneOf } from '../automations/match.ts';
import { countStartsOfTask, type NewStart, type TaskMove, writeStartsOfMove } from '../history/write.ts';

const readListening = defineStatement({
  name: 'read_automations_of_task_moves',
  text: `
    SELECT uid, triggers, concurrency_key FROM automations
    WHERE factory_uid = $1 AND enabled AND triggers @> '[{"provider": "factory", "event": "work_item_stage_changed"}]' ORDER BY uid`,
  row: { uid: text(), triggers: json<AutomationRow['triggers']>(), concurrency_key: nullable(text()) },
});

/** Returns whether a stored trigger selects moves into this stage. */
function selects(stored: unknown, stage: string): boolean {
  const parsed = Trigger.safeParse(stored);
  if (!parsed.success || parsed.data.provider !== 'factory') return false;
  const { stages } = (parsed.data.filter ?? {}) as { readonly stages?: Matcher };
  return (stages?.in?.includes(stage) ?? true) && !stages?.not_in?.includes(stage);
}

/**
 * Writes a start for each automation of the factory that the move matches, in the transaction that moves the task: either the task has
 * moved and its runs start, or neither. A loop of this room then creates the runs and applies the overlap policies. A task whose runs
 * move it to and fro stops after `maxStartsOfTask` starts of an automation in an hour.
 */
export async function startMoves(tx: Queryable, factoryUid: string, move: TaskMove): Promise<void> {
  const listening = await tx.query(readListening, [factoryUid]);
  const matching = listening.filter(({ triggers }) => triggers.some((trigger) => selects(trigger, move.to)));
  if (matching.length === 0) return;
  const counts = await countStartsOfTask(
    tx,
    move.factory_task_uid,
    matching.map(({ uid }) => uid),
  );
  const starts = matching.flatMap((automation): NewStart[] => {
    const count = counts.get(automation.uid) ?? 0;
    if (count > maxStartsOfTask) return [];
    const result =
      count < maxStartsOfTask
        ? ({ outcome: 'waiting', reason: 'the task has just moved', undecided: true } as const)
        : ({ outcome: 'skipped', reason: `the task has started this automation ${count} times in an hour` } as const);
    return [{ automationUid: automation.uid, event: { move }, lane: laneOf(automation, move), result }];
  });
  await writeStartsOfMove(tx, starts);
}
