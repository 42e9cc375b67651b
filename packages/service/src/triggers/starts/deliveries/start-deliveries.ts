/** Writes deliveries together with the runs of the automations that they match. */
import type { AutomationOutcome } from '@runyard/contract/webhooks/webhooks';
import { sqlState } from '../../../platform/store/database/connections.ts';
import type { Transaction } from '../../../platform/store/database/database.ts';
import { defineStatement, text } from '../../../platform/store/database/statement.ts';
import { finishPullRequests } from '../../../runs/inbox/resolve.ts';
import type { SubmitDeps } from '../../../runs/runs/submit/prepare.ts';
import { countCreated, defineInsertRuns, parametersOfRuns } from '../../../runs/runs/submit/submit.ts';
import { type CountedFailure, countAtCommit, disabledReason } from '../../automations/failures.ts';
import {
  type FedAutomation,
  type LimitedPullRequest,
  laneOf,
  type Mismatch,
  matcherOf,
  readFedBy,
} from '../../automations/match.ts';
import { reviewedPullRequest } from '../../automations/reviewed-pull-requests.ts';
import { noticePushes } from '../../definitions/source/pushes.ts';
import { insertStarts, type NewStart, startsParameter } from '../../history/write.ts';
import {
  type AcceptedDelivery,
  type CheckedDelivery,
  deliveryParameters,
  insertDeliveries,
  insertDeliveryRows,
  type TakenDelivery,
  takeDeliveries,
  toAccepted,
  toWritten,
  type Written,
} from '../../webhooks/ingest/take-deliveries.ts';
import { tellFollowers } from '../../webhooks/ingest/tell-followers.ts';
import { countsPassing, ownerFromAutomation } from '../decide/owner.ts';
import {
  type Candidate,
  outcomeOf,
  resultOf,
  runsOf,
  type StartDeps,
  type Started,
  startAll,
  Unprepared,
} from '../decide/start.ts';
import { limitPullRequests } from '../limit-pull-requests.ts';
import { noticeOfMissed } from '../missed.ts';

/**
 * Locks automations whose policy limits the live runs. If two deliveries arrive at once, the second transaction waits and then counts
 * the run of the first. All transactions lock automations in the order of the UIDs. Automations that allow overlap are not locked, so
 * their deliveries do not wait for each other. From now on, the transaction waits at most the time $2 for each lock; 0: without a limit.
 */
const lockOverlaps = defineStatement({
  name: 'lock_overlaps_of_automations',
  text: `
    WITH patience AS MATERIALIZED (SELECT set_config('lock_timeout', $2, true))
    SELECT a.uid FROM patience, automations a WHERE a.uid = ANY($1::text[]) ORDER BY a.uid FOR NO KEY UPDATE OF a`,
  row: { uid: text() },
});
const lockFreeOverlaps = defineStatement({
  name: 'lock_free_overlaps_of_automations',
  text: 'SELECT uid FROM automations WHERE uid = ANY($1::text[]) ORDER BY uid FOR NO KEY UPDATE SKIP LOCKED',
  row: { uid: text() },
});
const lockTimeout = '55P03';

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
  readonly pullRequest?: LimitedPullRequest;
  /** URL of the pull request that the event is about, if its trigger sets no limit. */
  readonly about?: string;
}

function matchAll(delivery: AcceptedDelivery, fed: readonly FedAutomation[]): Matched[] {
  const match = matcherOf(delivery);
  return fed
    .filter((row) => row.webhook_uids.includes(delivery.webhookUid))
    .map((row) => {
      if (!row.enabled) return { delivery, row, mismatch: { reason: disabledReason(row), checks: [] } };
      const matching = match(row);
      if (!matching.matched) return { delivery, row, mismatch: matching };
      const { pullRequest } = matching;
      const about = delivery.sender?.about;
      return { delivery, row, ...(pullRequest ? { pullRequest } : about === undefined ? {} : { about }) };
    });
}

/** Results of earlier transactions for the same deliveries. */
interface Earlier {
  /** Why the starts of automations must wait, by the UIDs of the automations. */
  readonly held: Map<string, string>;
  /** Maximum wait for a lock; '0': no maximum; undefined: a wait was in vain, so the starts of locked automations must wait. */
  patience: '2s' | '0' | undefined;
}

const isLimited = ({ row, pullRequest }: Matched): boolean => row.overlap !== 'allow' || pullRequest !== undefined;

/** Locks the automations that limit overlap, or the runs of a pull request. Adds those that other transactions keep locked to `held`. */
async function lockLimited(tx: Transaction, matches: readonly Matched[], earlier: Earlier): Promise<void> {
  const uids = [...new Set(matches.filter(isLimited).map(({ row }) => row.uid))];
  if (uids.length === 0) return;
  const { patience } = earlier;
  const rows = await (patience ? tx.query(lockOverlaps, [uids, patience]) : tx.query(lockFreeOverlaps, [uids]));
  const locked = new Set(rows.map(({ uid }) => uid));
  for (const uid of uids)
    if (!locked.has(uid)) earlier.held.set(uid, 'the automation was locked for 2 s; the service tries again');
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
function countResults(tx: Transaction, matches: readonly Matched[], started: readonly Started[]): void {
  const results = new Map<FedAutomation, (CountedFailure | null)[]>();
  for (const [index, { row }] of matches.entries()) {
    const one = started[index];
    const result = one && resultOf(one, countsPassing.automation);
    if (result !== undefined) results.set(row, [...(results.get(row) ?? []), result]);
  }
  for (const [row, own] of [...results].sort(([a], [b]) => (a.uid < b.uid ? -1 : 1))) countAtCommit(tx, row, own);
}

/**
 * Notifies of deliveries that could not start the run of an automation. Each automation gets the notice of its last such delivery. The
 * statements are sent after those of `countResults`, because all transactions lock first the automation and then its notifications.
 */
function noticeMissed(tx: Transaction, matches: readonly Matched[], started: readonly Started[]): void {
  const reasons = new Map<FedAutomation, string>();
  for (const [index, { row }] of matches.entries()) {
    const one = started[index];
    if (one?.outcome === 'failed') reasons.set(row, one.reason);
  }
  for (const [automation, reason] of [...reasons].sort(([a], [b]) => (a.uid < b.uid ? -1 : 1))) {
    const { statement, values } = noticeOfMissed({ automation }, reason);
    tx.atCommit(statement, values);
  }
}

/** Resolves the notifications about pull requests that were reviewed, merged or closed, with statements that are sent together with COMMIT. */
function noticeReviews(tx: Transaction, deliveries: readonly AcceptedDelivery[]): void {
  const reviewed = deliveries.flatMap((delivery) => {
    const url = reviewedPullRequest(delivery);
    return url === null ? [] : [{ teamId: delivery.teamId, url }];
  });
  for (const [teamId, each] of Map.groupBy(reviewed, ({ teamId }) => teamId))
    tx.atCommit(finishPullRequests, [teamId, each.map(({ url }) => url)]);
}

/**
 * Writes deliveries and starts the runs of the automations that they match, in the transaction of the caller. One statement, which is
 * sent together with COMMIT, writes the deliveries with their outcomes, the starts and the runs. Throws `Unprepared` if runs could not be
 * prepared.
 */
async function writeStarting(
  deps: SubmitDeps,
  tx: Transaction,
  deliveries: readonly CheckedDelivery[],
  earlier: Earlier,
) {
  const feeding = deliveries.filter(({ startsNothing }) => !startsNothing).map(toAccepted);
  // Send the statements of both calls together. The server executes them in this order.
  const [decided, fed] = await Promise.all([takeDeliveries(tx, deliveries), readFedBy(tx, feeding)]);
  const taken = deliveries.flatMap((delivery, index) => {
    const one = decided[index];
    return typeof one === 'object' ? [{ ...one, delivery }] : [];
  });
  const accepted = taken
    .filter(({ label, delivery }) => label === 'ACCEPTED' && !delivery.startsNothing)
    .map(({ delivery }) => toAccepted(delivery));
  const found = accepted.flatMap((delivery) => matchAll(delivery, fed));
  await lockLimited(
    tx,
    found.filter(({ mismatch }) => mismatch === undefined),
    earlier,
  );
  const matched = await limitPullRequests(tx, found);
  const matches = matched.filter(({ mismatch }) => mismatch === undefined);
  const candidates = matches.map(({ delivery, row }): Candidate => {
    const held = earlier.held.get(row.uid);
    const owner = ownerFromAutomation(row, row.may_start, row.agent_of_run);
    const lane = laneOf(row, delivery.payload);
    return { owner, event: { kind: 'delivery', delivery }, lane, ...(held === undefined ? {} : { held }) };
  });
  const started = await startAll(deps, tx, candidates);
  const startedBy = new Map(matches.map((one, index) => [one, started[index]]));
  const ofDelivery = Map.groupBy(matched, ({ delivery }) => delivery.deliveryId);
  const parameters = deliveryParameters(
    taken.map((each): TakenDelivery => {
      const own = ofDelivery.get(each.delivery.id) ?? [];
      return { ...each, outcomes: own.map((one) => outcomeInLog(one, startedBy.get(one))) };
    }),
  );
  const runs = runsOf(started);
  const starts = matches.flatMap(({ row, pullRequest, about, delivery }, index): NewStart[] => {
    const [one, lane = null] = [started[index], candidates[index]?.lane];
    if (!one) return [];
    const { webhookUid, deliveryId } = delivery;
    const event = { webhookUid, deliveryId };
    return [{ automationUid: row.uid, event, lane, result: outcomeOf(one), pullRequest, about }];
  });
  if (starts.length > 0)
    tx.atCommit(insertRunsAndStarts, [...parametersOfRuns(runs), startsParameter(starts), ...parameters]);
  else if (taken.length > 0) tx.atCommit(insertDeliveries, parameters);
  countCreated(
    tx,
    runs.map(({ run }) => run),
  );
  countResults(tx, matches, started);
  noticeMissed(tx, matches, started);
  noticePushes(tx, accepted);
  noticeReviews(tx, accepted);
  return decided;
}

/** Writes one delivery in the transaction of the caller. Throws if the run of an automation cannot be prepared. */
export async function writeDelivery(deps: SubmitDeps, tx: Transaction, delivery: CheckedDelivery): Promise<Written> {
  const decided = await writeStarting(deps, tx, [delivery], { held: new Map(), patience: '0' });
  return (await toWritten(tx, [delivery], decided))[0] ?? { kind: 'changed' };
}

/**
 * Writes deliveries and the runs of the automations that they match in one transaction. If the run of an automation cannot be prepared,
 * repeats the transaction in which the starts of this automation wait: `settle.ts` starts them later. So an automation delays neither
 * the delivery nor other automations.
 */
export async function writeDeliveries(deps: StartDeps, deliveries: readonly CheckedDelivery[]): Promise<Written[]> {
  const earlier: Earlier = { held: new Map(), patience: '2s' };
  for (;;) {
    try {
      const decided = await deps.db.transaction((tx) => writeStarting(deps, tx, deliveries, earlier));
      return await toWritten(deps.db, deliveries, decided);
    } catch (error) {
      if (error instanceof Unprepared) {
        for (const [uid, cause] of error.causes) {
          deps.executionDeps.log.error(
            { err: cause, automation_id: uid },
            'the run of a delivery is tried again later',
          );
          earlier.held.set(uid, 'the service could not create the run; its log has the reason. It tries again');
        }
      } else if (sqlState(error) === lockTimeout && earlier.patience) earlier.patience = undefined;
      else throw error;
    }
  }
}
