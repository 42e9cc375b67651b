/** Shows how automations would handle a delivery, or a time of a schedule. Creates nothing. */
import type { SimulatedStart } from '@runyard/contract/webhooks/simulations';
import { previewRun, type SubmitDeps } from '../../runs/runs/submit/prepare.ts';
import type { AutomationRow } from '../automations/automation-row.ts';
import { disabledReason } from '../automations/failures.ts';
import { laneOf, matcherOf } from '../automations/match.ts';
import { readLoads } from '../history/load.ts';
import type { TriggerRow } from '../schedules/of-automation.ts';
import { reasonOf } from '../schedules/run-of-schedule.ts';
import type { AcceptedDelivery } from '../webhooks/ingest/take-deliveries.ts';
import { type EventOfRun, readOwners, scheduleOfRun } from './decide/owner.ts';
import { decide, liveLimitOf, noLoad } from './decide/start.ts';

/** A delivery that is only simulated. */
export type SimulatedDelivery = AcceptedDelivery & {
  /** Why a sender of this delivery would get 404; absent: the webhook would accept the delivery. */
  readonly refusal?: string;
};

/** An event for which a start is simulated. */
type SimulatedEvent =
  | { readonly kind: 'delivery'; readonly delivery: SimulatedDelivery }
  | { readonly kind: 'time'; readonly schedule: TriggerRow };

/** Returns how each automation would handle the delivery now. */
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
        ? { ...named, matched: true, ...(await simulateStart(deps, row, { kind: 'delivery', delivery })) }
        : {
            ...named,
            matched: false,
            would_start: false,
            reason: matching.reason || 'no trigger selects the webhook',
            ...(matching.checks.length > 0 ? { checks: [...matching.checks] } : {}),
          },
    );
  }
  return starts;
}

/** Returns what would happen if the schedule trigger of an automation fired now. */
export async function simulateTime(
  deps: SubmitDeps,
  row: AutomationRow,
  schedule: TriggerRow,
): Promise<SimulatedStart> {
  const start = await simulateStart(deps, row, { kind: 'time', schedule });
  return { automation_id: row.uid, name: row.name, matched: true, ...start };
}

/** Returns why the event would not reach the automation; undefined if the event would reach it. */
function refusalOf(row: AutomationRow, event: SimulatedEvent): string | undefined {
  if (event.kind === 'delivery') return event.delivery.refusal;
  const { enabled, last_spawn_error: error } = event.schedule;
  return row.enabled && !enabled ? `the schedule is paused: ${error}` : undefined;
}

async function simulateStart(
  deps: SubmitDeps,
  row: AutomationRow,
  event: SimulatedEvent,
): Promise<Pick<SimulatedStart, 'would_start' | 'refusals' | 'run'>> {
  const { db } = deps.executionDeps;
  const refusals: string[] = [];
  const unreached = refusalOf(row, event);
  if (unreached !== undefined) refusals.push(unreached);
  if (!row.enabled) refusals.push(disabledReason(row));
  const owner = (await readOwners(db, [], [row])).get(row.uid);
  if (!owner) throw new Error('the automation has no owner of starts');
  if (owner.executorProblem !== null) refusals.push(owner.executorProblem);
  const lane = event.kind === 'time' ? null : laneOf(row, event.delivery.payload);
  const isLimited = liveLimitOf(owner) !== null;
  const [load] = isLimited ? await readLoads(db, [{ kind: 'automation', owner: row.uid, lane }]) : [];
  const decision = decide(owner, load ?? noLoad);
  if (decision.kind !== 'start') refusals.push(`${decision.kind === 'wait' ? 'waits' : 'skipped'}: ${decision.reason}`);
  const submission = owner.submissionFor(eventOf(event));
  if (typeof submission === 'string') return { would_start: false, refusals: [...refusals, submission] };
  const preview = await previewRun(deps, submission);
  const refused = preview.kind === 'ok' ? preview.refusal : preview;
  if (refused) refusals.push(reasonOf(refused, owner.nameOf));
  return {
    would_start: refusals.length === 0,
    ...(refusals.length === 0 ? {} : { refusals }),
    ...(preview.kind === 'ok' ? { run: runOf(preview.run, event) } : {}),
  };
}

const eventOf = (event: SimulatedEvent): EventOfRun =>
  event.kind === 'delivery' ? event : { kind: 'time', schedule: scheduleOfRun(event.schedule), isOwn: true };

type Preview = Extract<Awaited<ReturnType<typeof previewRun>>, { kind: 'ok' }>;

const runOf = ({ title, prompt, config, metadata }: Preview['run'], event: SimulatedEvent): SimulatedStart['run'] => ({
  title,
  prompt,
  config,
  metadata: { ...metadata },
  attachments:
    event.kind === 'time'
      ? []
      : [
          {
            file_name: 'event-payload.json',
            mime_type: 'application/json',
            size_bytes: event.delivery.body.length,
          },
        ],
});
