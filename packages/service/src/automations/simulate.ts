/** Shows what automations would make of a delivery. Creates nothing. */
import type { SimulatedStart } from '@runyard/contract/simulations';
import { mayStartRuns } from '../access/may-start-runs.ts';
import { readAgentOfRun } from '../factories/agents.ts';
import { previewRun, type SubmitDeps } from '../runs/submit/submit.ts';
import { reasonOf } from '../schedules/run-of-schedule.ts';
import type { AcceptedDelivery } from '../webhooks/ingest/start-automations.ts';
import { type AutomationRow, editorOf } from './automation-row.ts';
import { disabledReason } from './failures.ts';
import { editorMayNot } from './items.ts';
import { laneOf } from './lane.ts';
import { matcherOf } from './match.ts';
import { missingAgent } from './run-request.ts';
import { requestFor } from './spawn.ts';
import { decideStart } from './starts.ts';

/** A delivery that is not sent, or not again. `isAccepted`: the webhook is enabled. */
export type SimulatedDelivery = AcceptedDelivery & { readonly isAccepted: boolean };

/** Returns what each automation would make of the delivery now. */
export async function simulateStarts(
  deps: SubmitDeps,
  automations: readonly AutomationRow[],
  delivery: SimulatedDelivery,
): Promise<SimulatedStart[]> {
  const match = matcherOf(delivery);
  const starts: SimulatedStart[] = [];
  for (const row of automations) {
    const matching = match(row);
    const named = { automation_id: row.uid, name: row.name };
    starts.push(
      matching.matched
        ? { ...named, matched: true, ...(await simulateStart(deps, row, delivery)) }
        : { ...named, matched: false, would_start: false, reason: matching.reason || 'no trigger selects the webhook' },
    );
  }
  return starts;
}

async function simulateStart(
  deps: SubmitDeps,
  row: AutomationRow,
  delivery: SimulatedDelivery,
): Promise<Pick<SimulatedStart, 'would_start' | 'refusals' | 'run'>> {
  const { db } = deps.executionDeps;
  const actor = { teamId: row.team_id, creator: editorOf(row) };
  const editor = { teamId: row.team_id, ...editorOf(row) };
  const refusals: string[] = [];
  if (!delivery.isAccepted) refusals.push('the webhook is disabled');
  if (!row.enabled) refusals.push(disabledReason(row));
  if (!(await mayStartRuns(db, [editor]))(editor)) refusals.push(editorMayNot);
  const decision = await decideStart(db, row, laneOf(row, delivery.payload));
  if (decision.kind !== 'start') refusals.push(`${decision.kind === 'wait' ? 'waits' : 'skipped'}: ${decision.reason}`);
  const { team_id: teamId, factory_uid: factoryUid } = row;
  const agent = await readAgentOfRun(db, { teamId, factoryUid }, row.agent ?? undefined);
  if (!agent) {
    refusals.push(`agent: ${missingAgent(row.agent ?? 'foreman')}`);
    return { would_start: false, refusals };
  }
  const request = requestFor(row, agent, { kind: 'delivery', delivery });
  const preview = await previewRun(deps, { actor, request, source: 'WEBHOOK' });
  const refused = preview.kind === 'ok' ? preview.refusal : preview;
  if (refused) refusals.push(reasonOf(refused, (fault) => fault));
  return {
    would_start: refusals.length === 0,
    ...(refusals.length === 0 ? {} : { refusals }),
    ...(preview.kind === 'ok' ? { run: runOf(preview.run, delivery.body.length) } : {}),
  };
}

type Preview = Extract<Awaited<ReturnType<typeof previewRun>>, { kind: 'ok' }>;

const runOf = ({ title, prompt, config, metadata }: Preview['run'], sizeBytes: number): SimulatedStart['run'] => ({
  title,
  prompt,
  config,
  metadata: { ...metadata },
  attachments: [{ file_name: 'event-payload.json', mime_type: 'application/json', size_bytes: sizeBytes }],
});
