/** Shows what automations would make of a delivery. Creates nothing. */
import type { SimulatedStart } from '@runyard/contract/automations';
import type { AmbientAgentConfig } from '@runyard/contract/config';
import { mayStartRuns } from '../access/may-start-runs.ts';
import { previewRun, type SubmitDeps } from '../runs/submit/submit.ts';
import { decide } from '../schedules/decide.ts';
import { reasonOf } from '../schedules/run-of-schedule.ts';
import type { AcceptedDelivery } from '../webhooks/ingest/start-automations.ts';
import { type AutomationRow, editorOf } from './automation-row.ts';
import { editorMayNot } from './items.ts';
import { laneOf } from './lane.ts';
import { readLoad } from './load.ts';
import { matcherOf } from './match.ts';
import { requestFor } from './spawn.ts';

/** A delivery that is not sent, or not again. `isAccepted`: the webhook is enabled. */
export type SimulatedDelivery = AcceptedDelivery & { readonly isAccepted: boolean };

/** An automation, and the configuration of its factory. */
export interface SimulatedAutomation {
  readonly row: AutomationRow;
  readonly defaults: AmbientAgentConfig;
}

/** Returns what each automation would make of the delivery now. */
export async function simulateStarts(
  deps: SubmitDeps,
  automations: readonly SimulatedAutomation[],
  delivery: SimulatedDelivery,
): Promise<SimulatedStart[]> {
  const match = matcherOf(delivery);
  const starts: SimulatedStart[] = [];
  for (const { row, defaults } of automations) {
    const matching = match(row);
    const named = { automation_id: row.uid, name: row.name };
    starts.push(
      matching.matched
        ? { ...named, matched: true, ...(await simulateStart(deps, row, defaults, delivery)) }
        : { ...named, matched: false, would_start: false, reason: matching.reason || 'no trigger selects the webhook' },
    );
  }
  return starts;
}

async function simulateStart(
  deps: SubmitDeps,
  row: AutomationRow,
  defaults: AmbientAgentConfig,
  delivery: SimulatedDelivery,
): Promise<Pick<SimulatedStart, 'would_start' | 'refusals' | 'run'>> {
  const { db } = deps.executionDeps;
  const actor = { teamId: row.team_id, creator: editorOf(row) };
  const editor = { teamId: row.team_id, ...editorOf(row) };
  const refusals: string[] = [];
  if (!delivery.isAccepted) refusals.push('the webhook is disabled');
  if (!row.enabled) refusals.push('the automation is disabled');
  if (!(await mayStartRuns(db, [editor]))(editor)) refusals.push(editorMayNot);
  const decision = decide(
    { overlap: row.overlap, max_live_runs: null },
    row.overlap === 'allow' ? { live: 0, waiting: 0 } : await readLoad(db, row.uid, laneOf(row, delivery.payload)),
  );
  if (decision.kind !== 'start') refusals.push(`${decision.kind === 'wait' ? 'waits' : 'skipped'}: ${decision.reason}`);
  const request = requestFor(row, defaults, delivery);
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
