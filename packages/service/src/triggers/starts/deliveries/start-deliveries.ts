/** Writes deliveries that may start runs, together with the runs of the automations that they match. */
import type { AutomationOutcome } from '@runyard/contract/webhooks/webhooks';
import { defineStatement, text } from '../../../platform/store/database/statement.ts';
import type { Transaction } from '../../../platform/store/database/transaction.ts';
import type { SubmitDeps } from '../../../runs/runs/submit/prepare.ts';
import { countCreated, defineInsertRuns, parametersOfRuns } from '../../../runs/runs/submit/submit.ts';
import { type CountedFailure, countAtCommit, disabledReason } from '../../automations/failures.ts';
import { type FedAutomation, laneOf, type Mismatch, matcherOf, readFedBy } from '../../automations/match.ts';
import { noticePushes } from '../../definitions/source/pushes.ts';
import { insertStarts, type NewStart, startsParameter } from '../../history/write.ts';
import type { KnownWebhook } from '../../webhooks/ingest/directory.ts';
import {
  type AcceptedDelivery,
  type DeliveryRows,
  type FeedingDelivery,
  insertDeliveryRows,
  makeDeliveryRows,
  type TakenDelivery,
  takeDeliveries,
} from '../../webhooks/ingest/take-deliveries.ts';
import { tellFollowers } from '../../webhooks/ingest/tell-followers.ts';
import type { CheckedDelivery, NotWritten, Written } from '../../webhooks/ingest/write-deliveries.ts';
import { explainRefusal } from '../../webhooks/ingest/write-rejection.ts';
import { countsPassing, ownerFromAutomation } from '../decide/owner.ts';
import { type Candidate, outcomeOf, resultOf, runsOf, type Started, startAll } from '../decide/start.ts';

/**
 * Starts the runs of the automations that match accepted deliveries of one team, in the transaction. Returns for each delivery whether
 * an automation selects its webhook. Adds the outcomes to `rows`. If it writes runs, it also stores these rows, in the same statement.
 */
type StartAccepted = (deliveries: readonly AcceptedDelivery[], rows: DeliveryRows) => Promise<readonly boolean[]>;

/**
 * Reads the automations for deliveries that the transaction may accept, and returns the function that starts the runs of those that it
 * accepts. Sends its first statement at once, so that the caller can send others with it. If the transaction is rolled back, the
 * caller may pass the same deliveries again. If the returned function throws, the deliveries are rolled back, and their senders get an
 * error.
 */
export type StartDeliveries = (tx: Transaction, deliveries: readonly FeedingDelivery[]) => Promise<StartAccepted>;

/** Makes the function that starts the runs of deliveries. */
export function startDeliveriesWith(deps: SubmitDeps): StartDeliveries {
  return async (tx, feeding) => {
    const fed = await readFedBy(tx, feeding);
    return async (deliveries, rows) =>
      fed.length === 0 ? deliveries.map(() => false) : await startFed(deps, tx, fed, deliveries, rows);
  };
}

/**
 * Locks automations whose policy limits the live runs. If two deliveries arrive at once, the second transaction waits and then counts
 * the run of the first. All transactions lock automations in the order of the UIDs. Automations that allow overlap are not locked, so
 * their deliveries do not wait for each other.
 */
const lockOverlaps = defineStatement({
  name: 'lock_overlaps_of_automations',
  text: 'SELECT uid FROM automations WHERE uid = ANY($1::text[]) ORDER BY uid FOR NO KEY UPDATE',
  row: { uid: text() },
});

/** Writes runs, their starts (parameter $4) and their deliveries ($5 to $7). */
const insertRunsAndStarts = defineInsertRuns(
  'insert_runs_and_starts_of_deliveries',
  `start AS (${insertStarts('$4')}
    ), ${insertDeliveryRows('$5', '$6', '$7')}`,
  tellFollowers,
);

/** A delivery, an automation that selects its webhook, and the reason why the automation does not match; undefined: it matches. */
interface Matched {
  readonly delivery: AcceptedDelivery;
  readonly row: FedAutomation;
  readonly mismatch?: Mismatch;
}

function matchAll(delivery: AcceptedDelivery, fed: readonly FedAutomation[]): Matched[] {
  const match = matcherOf(delivery);
  return fed
    .filter((row) => row.webhook_uids.includes(delivery.webhookUid))
    .map((row) => {
      if (!row.enabled) return { delivery, row, mismatch: { reason: disabledReason(row), checks: [] } };
      const matching = match(row);
      return { delivery, row, ...(matching.matched ? {} : { mismatch: matching }) };
    });
}

async function startFed(
  deps: SubmitDeps,
  tx: Transaction,
  fed: readonly FedAutomation[],
  deliveries: readonly AcceptedDelivery[],
  rows: DeliveryRows,
): Promise<boolean[]> {
  const matched = deliveries.map((delivery) => matchAll(delivery, fed));
  const matches = matched.flat().filter(({ mismatch }) => mismatch === undefined);
  const exclusive = matches.filter(({ row }) => row.overlap !== 'allow').map(({ row }) => row.uid);
  if (exclusive.length > 0) await tx.query(lockOverlaps, [[...new Set(exclusive)]]);
  const owners = new Map(fed.map((row) => [row.uid, ownerFromAutomation(row, row.may_start, row.agent_of_run)]));
  const candidates = matches.flatMap(({ delivery, row }): Candidate[] => {
    const owner = owners.get(row.uid);
    return owner ? [{ owner, event: { kind: 'delivery', delivery }, lane: laneOf(row, delivery.payload) }] : [];
  });
  const started = await startAll(deps, tx, candidates);
  const startedBy = new Map(matches.map((one, index) => [one, started[index]]));
  rows.note(
    matched.flatMap((each) => {
      const outcomes = each.map((one) => outcomeInLog(one, startedBy.get(one)));
      const id = each[0]?.delivery.deliveryId;
      return id === undefined ? [] : [{ id, runs: outcomes.flatMap(({ run_id: runId }) => runId ?? []), outcomes }];
    }),
  );
  if (started.length > 0) writeAtCommit(tx, candidates, started, rows);
  countResults(tx, matches, startedBy);
  return matched.map((each) => each.length > 0);
}

/** Writes the runs and starts together with the deliveries, in one statement. */
function writeAtCommit(
  tx: Transaction,
  candidates: readonly Candidate[],
  started: readonly Started[],
  rows: DeliveryRows,
): void {
  const starts = candidates.flatMap(({ owner, event, lane }, index): NewStart[] => {
    const one = started[index];
    if (!one || event.kind !== 'delivery') return [];
    const { webhookUid, deliveryId } = event.delivery;
    return [{ automationUid: owner.owner, event: { webhookUid, deliveryId }, lane, result: outcomeOf(one) }];
  });
  const runs = runsOf(started);
  tx.atCommit(insertRunsAndStarts, [...parametersOfRuns(runs), startsParameter(starts), ...rows.take()]);
  countCreated(
    tx,
    runs.map(({ run }) => run),
  );
}

/** Returns the outcome of a delivery for an automation, as the log of the webhook shows it. */
function outcomeInLog({ row, mismatch }: Matched, started: Started | undefined): AutomationOutcome {
  const automation_id = row.uid;
  switch (started?.outcome) {
    case 'started':
      return { automation_id, matched: true, run_id: started.run.run.id };
    case 'skipped':
      return { automation_id, matched: true, reason: `skipped: ${started.reason}` };
    case 'waiting':
      return { automation_id, matched: true, reason: `waits: ${started.reason}` };
    case 'failed':
      return { automation_id, matched: true, reason: started.reason };
    case undefined:
      return {
        automation_id,
        matched: false,
        ...(mismatch?.reason ? { reason: mismatch.reason } : {}),
        ...(mismatch && mismatch.checks.length > 0 ? { checks: [...mismatch.checks] } : {}),
      };
  }
}

/**
 * Counts the failures of each automation in the order of the deliveries. Sends the statements at the end of the transaction and in the
 * order of the automations' UIDs, because all transactions lock automations in this order.
 */
function countResults(
  tx: Transaction,
  matches: readonly Matched[],
  startedBy: ReadonlyMap<Matched, Started | undefined>,
): void {
  const results = new Map<FedAutomation, (CountedFailure | null)[]>();
  for (const one of matches) {
    const started = startedBy.get(one);
    const result = started && resultOf(started, countsPassing.automation);
    if (result !== undefined) results.set(one.row, [...(results.get(one.row) ?? []), result]);
  }
  for (const [row, own] of [...results].sort(([a], [b]) => compareUids(a.uid, b.uid))) countAtCommit(tx, row, own);
}

const compareUids = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);

/** Writes deliveries and starts the runs of the automations that they match, in the transaction of the caller. */
export async function writeStarting(
  tx: Transaction,
  startDeliveries: StartDeliveries,
  deliveries: readonly CheckedDelivery[],
): Promise<(Written | NotWritten)[]> {
  const candidates = deliveries.filter(({ startsNothing }) => !startsNothing).map(toAccepted);
  // Send the statements of both calls together. The server executes them in this order.
  const [kinds, startAccepted] = await Promise.all([
    takeDeliveries(tx, deliveries),
    candidates.length > 0 ? startDeliveries(tx, candidates) : undefined,
  ]);
  const taken = deliveries.flatMap((delivery, index): TakenDelivery[] => {
    const kind = kinds[index];
    if (kind === 'ACCEPTED') return [{ delivery, label: kind, reason: delivery.reason ?? null }];
    return typeof kind === 'object' ? [{ delivery, ...kind }] : [];
  });
  const { rows, writeRest } = makeDeliveryRows(taken);
  const starting = taken.flatMap(({ delivery, label }) =>
    label === 'ACCEPTED' && !delivery.startsNothing ? [delivery] : [],
  );
  const accepted = starting.map(toAccepted);
  const reached = startAccepted && accepted.length > 0 ? await startAccepted(accepted, rows) : [];
  noticePushes(tx, accepted);
  for (const [index, { webhook }] of starting.entries()) webhook.hints.feedsAutomations = reached[index] ?? false;
  writeRest(tx);
  const refusals = new Map<KnownWebhook, NotWritten>();
  for (const [index, { webhook }] of deliveries.entries())
    if (kinds[index] === 'full' && !refusals.has(webhook))
      refusals.set(webhook, await explainRefusal(tx, webhook, 'delivery'));
  return deliveries.map(({ webhook }, index) => {
    if (kinds[index] === 'ACCEPTED') return { kind: 'accepted' };
    if (typeof kinds[index] === 'object') return { kind: 'duplicate' };
    return (kinds[index] === 'full' ? refusals.get(webhook) : undefined) ?? { kind: 'changed' };
  });
}

const toAccepted = ({ webhook, id, body, payload, event }: CheckedDelivery): AcceptedDelivery => ({
  deliveryId: id,
  webhookUid: webhook.uid,
  webhookName: webhook.name,
  factoryUid: webhook.factoryUid,
  teamId: webhook.teamId,
  scheme: webhook.scheme,
  event,
  body,
  payload,
});
