/** Finds the automations that read the deliveries of a webhook, and decides which of them a delivery starts. */

import { createHash } from 'node:crypto';
import { parsePayloadFilter } from '@runyard/contract/automations/payload-filter/parse';
import type { PayloadFilter } from '@runyard/contract/automations/payload-filter/plan';
import { Trigger } from '@runyard/contract/factories/files/triggers';
import { maxChecksOfOutcome, type TriggerCheck } from '@runyard/contract/webhooks/checks';
import type { GithubEvent, GithubFilter, Matcher } from '@runyard/contract/webhooks/github-events';
import { shorten } from '@runyard/contract/wire/shorten';
import type { Queryable } from '../../platform/store/database/database.ts';
import {
  boolean,
  defineStatement,
  json,
  nullable,
  type RowOf,
  texts,
} from '../../platform/store/database/statement.ts';
import { mayStartRunsOf } from '../../team/access/may-start-runs.ts';
import { type AgentOfRun, agentOfRun } from '../factories/agents.ts';
import type { PullRequestOfRun } from '../webhooks/ingest/sender.ts';
import type { AcceptedDelivery } from '../webhooks/ingest/take-deliveries.ts';
import { type AutomationRow, automationColumns, automationRow } from './automation-row.ts';
import { matchGithubTrigger } from './github/match.ts';
import { faultOfSender } from './github/match-sender.ts';
import { readGithubDelivery } from './github/read-delivery.ts';
import { type Budget, evaluatePayloadFilter, giveBack, takePart } from './payload-filter/evaluate.ts';
import { explainPayloadFilter } from './payload-filter/explain.ts';

/**
 * Returns the automations that read one of the webhooks $1. An automation may be large, so each is returned only once, with all its
 * webhooks. Locks the automations, so that none is deleted before the transaction ends. $3: whether GitHub sends to the webhook.
 */
const readFed = defineStatement({
  name: 'read_automations_of_webhooks',
  text: `
    SELECT ${automationColumns}, fed.webhook_uids, ${mayStartRunsOf('a.team_id', 'a.executor_kind', 'a.executor_uid')} AS may_start,
      ${agentOfRun('a.team_id', 'a.factory_uid', 'a.agent')} AS agent_of_run
    FROM automations a CROSS JOIN LATERAL (
      SELECT array_agg(w.uid) AS webhook_uids FROM unnest($1::text[], $2::text[], $3::boolean[]) AS w (uid, factory_uid, is_github)
      WHERE w.factory_uid = a.factory_uid AND EXISTS (SELECT FROM jsonb_array_elements(a.triggers) t WHERE
        t ->> 'provider' = 'webhook' AND (t -> 'filter' -> 'webhook_ids' ? w.uid OR t -> 'filter' -> 'webhook_ids' -> 'in' ? w.uid)
        OR t ->> 'provider' = 'github' AND w.is_github)) fed
    WHERE a.factory_uid = ANY ($2) AND fed.webhook_uids IS NOT NULL
    ORDER BY a.uid FOR KEY SHARE OF a`,
  row: { ...automationRow, webhook_uids: texts, may_start: boolean, agent_of_run: nullable(json<AgentOfRun>()) },
});

/** An automation with the webhooks that it reads, whether its editor may start runs of the team, and the agent of its runs. */
export type FedAutomation = RowOf<typeof readFed>;

/** A webhook whose deliveries automations may read. */
type FeedingWebhook = Pick<AcceptedDelivery, 'webhookUid' | 'factoryUid' | 'scheme'>;

/** Returns the automations with a trigger that selects one of the webhooks. */
export async function readFedBy(tx: Queryable, feeding: readonly FeedingWebhook[]): Promise<FedAutomation[]> {
  if (feeding.length === 0) return [];
  const webhooks = [...new Map(feeding.map((each) => [each.webhookUid, each])).values()];
  return await tx.query(readFed, [
    webhooks.map(({ webhookUid }) => webhookUid),
    webhooks.map(({ factoryUid }) => factoryUid),
    webhooks.map(({ scheme }) => scheme === 'github'),
  ]);
}

/** Largest number of comparisons of one delivery with all automations together. One filter may use at most 400,000 of them. */
const maxComparisonsOfDelivery = 2_000_000;
/** Largest number of steps for all path patterns of one GitHub trigger. */
const maxGithubSteps = 500_000;
const maxReasonLength = 500;
/** Largest number of unmet conditions that a reason names. */
const maxNamed = 3;
/** Largest number of characters in the path or the reason of a stored condition. */
const maxCheckLength = 200;
/** Largest number of unmet conditions that are stored with one delivery, for all automations together. */
const maxChecksOfDelivery = 100;

/** A parsed trigger, ready to be compared with deliveries. */
type Plan =
  | {
      readonly provider: 'webhook';
      readonly webhookUids: readonly string[];
      readonly events: Matcher;
      readonly payload: PayloadFilter;
    }
  | { readonly provider: 'github'; readonly event: GithubEvent; readonly filter: GithubFilter };

function planOf(stored: unknown): Plan | null {
  const parsed = Trigger.safeParse(stored);
  if (!parsed.success) return null;
  const trigger = parsed.data as Record<'provider' | 'event', string> & { readonly filter?: Record<string, unknown> };
  const { provider, event, filter = {} } = trigger;
  if (provider === 'github') return { provider, event: event as GithubEvent, filter: filter as GithubFilter };
  if (provider !== 'webhook') return null;
  const payload = parsePayloadFilter(filter.payload ?? {});
  const { webhook_ids: webhookUids, events = {} } = filter as { webhook_ids: string[]; events?: Matcher };
  return payload.ok ? { provider, webhookUids, events, payload: payload.filter } : null;
}

/** The parsed triggers of each version of an automation, so that each trigger is parsed only once. */
const plans = new Map<string, readonly (Plan | null)[]>();
const maxPlans = 1_000;

function plansOf({ uid, updated_at, triggers }: AutomationRow): readonly (Plan | null)[] {
  const key = `${uid} ${updated_at}`;
  const known = plans.get(key);
  if (known) return known;
  if (plans.size >= maxPlans) plans.clear();
  const made = triggers.map(planOf);
  plans.set(key, made);
  return made;
}

/** The parts of a delivery that triggers compare. */
export type MatchedDelivery = Pick<AcceptedDelivery, 'webhookUid' | 'scheme' | 'event' | 'payload' | 'sender'>;

/** Why a delivery does not start an automation: a text, and the unmet conditions. */
export interface Mismatch {
  readonly reason: string;
  readonly checks: readonly TriggerCheck[];
}

/** The pull request to which the matching trigger is limited. */
export interface LimitedPullRequest extends PullRequestOfRun {
  readonly maxStarts: number;
}

export type Match =
  | { readonly matched: true; readonly pullRequest?: LimitedPullRequest }
  | ({ readonly matched: false } & Mismatch);

type Check = Omit<TriggerCheck, 'trigger'>;

const describe = (checks: readonly Check[]): string =>
  checks
    .slice(0, maxNamed)
    .map(({ path, reason }) => (path === undefined ? reason : `${path}: ${reason}`))
    .join('; ');

/** Returns the first conditions that are not met, with short texts. */
export const failedOf = <C extends Check>(checks: readonly C[]): C[] =>
  checks
    .filter(({ passed }) => !passed)
    .slice(0, maxChecksOfOutcome)
    .map((check) => ({
      ...check,
      ...(check.path === undefined ? {} : { path: shorten(check.path, maxCheckLength) }),
      reason: shorten(check.reason, maxCheckLength),
    }));

/** Returns the unmet condition on the name of the event; null if the name meets all conditions. */
function mismatchOfEvent(matcher: Matcher, event: string | null): Check | null {
  const reason = reasonOfEvent(matcher, event);
  return reason === null ? null : { check: 'event', path: 'events', passed: false, reason };
}

function reasonOfEvent({ in: wanted, not_in: excluded }: Matcher, event: string | null): string | null {
  const found = event === null ? 'no header names the event' : `found ${JSON.stringify(event)}`;
  const list = (names: readonly unknown[]) =>
    names
      .slice(0, maxNamed)
      .map((name) => JSON.stringify(name))
      .join(', ');
  if (wanted && (event === null || !wanted.includes(event))) return `${found}; allowed: ${list(wanted)}`;
  return event !== null && excluded?.includes(event) ? `${found}; not allowed: ${list(excluded)}` : null;
}

/**
 * Returns the conditions of a trigger that the delivery does not meet. Returns null, or the pull request to which the trigger is limited,
 * if the trigger matches, and undefined if the trigger does not select the webhook.
 */
function mismatch(
  plan: Plan,
  delivery: MatchedDelivery,
  total: Budget,
): readonly Check[] | LimitedPullRequest | null | undefined {
  if (plan.provider === 'webhook') {
    if (!plan.webhookUids.includes(delivery.webhookUid)) return undefined;
    if (delivery.sender?.is_own) return [{ check: 'event', passed: false, reason: byOwn }];
    const ofEvent = mismatchOfEvent(plan.events, delivery.event);
    if (ofEvent !== null) return [ofEvent];
    if (evaluatePayloadFilter(plan.payload, delivery.payload, total) === 'match') return null;
    return explainPayloadFilter(plan.payload, delivery.payload, total).checks;
  }
  if (delivery.scheme !== 'github') return undefined;
  const steps = takePart(total, maxGithubSteps);
  const events = readGithubDelivery(delivery.event ?? '', delivery.payload);
  const { would_trigger: matches, checks } = matchGithubTrigger(events, plan, steps);
  giveBack(total, steps);
  if (!matches) return checks;
  const reason = delivery.sender && faultOfSender(delivery.sender, plan.filter);
  if (reason !== undefined) return [{ check: 'event', passed: false, reason }];
  const { own_pull_request: own } = plan.filter;
  const pullRequest = delivery.sender?.pull_request;
  if (own === undefined) return delivery.sender?.is_own ? [ownPullRequestCheck(byOwn)] : null;
  return pullRequest ? { ...pullRequest, maxStarts: own.max_starts } : [ownPullRequestCheck(notOwn)];
}

const byOwn = 'the GitHub App itself caused the event, and the trigger is not limited by own_pull_request';
const notOwn = 'no run of the team has pushed the branch of this pull request, or the event comes from no GitHub App';

/** Returns the unmet condition on the pull request of an event. */
export const ownPullRequestCheck = (reason: string): Check => ({
  check: 'in',
  path: 'own_pull_request',
  passed: false,
  reason,
});

/**
 * Returns a function that compares an automation with one delivery. All calls of the function together may make only a limited number
 * of comparisons.
 */
export function matcherOf(delivery: MatchedDelivery): (automation: AutomationRow) => Match {
  const total: Budget = { left: maxComparisonsOfDelivery };
  let room = maxChecksOfDelivery;
  return (automation) => {
    const reasons: string[] = [];
    const checks: TriggerCheck[] = [];
    for (const [index, plan] of plansOf(automation).entries()) {
      if (total.left <= 0) {
        reasons.push(`the filters of all automations need more than ${maxComparisonsOfDelivery} comparisons`);
        break;
      }
      const found = plan === null ? undefined : mismatch(plan, delivery, total);
      if (found === null) return { matched: true };
      if (found === undefined) continue;
      if (!Array.isArray(found)) return { matched: true, pullRequest: found as LimitedPullRequest };
      const failed = found.filter(({ passed }) => !passed);
      reasons.push(`triggers[${index}]: ${describe(failed)}`);
      checks.push(...failedOf(failed).map((check) => ({ ...check, trigger: index })));
    }
    const firstChecks = checks.slice(0, Math.min(maxChecksOfOutcome, room));
    room -= firstChecks.length;
    return { matched: false, reason: shorten(reasons.join('. '), maxReasonLength), checks: firstChecks };
  };
}

/**
 * Returns the lane of a run. The overlap policy of an automation applies separately to the runs of each lane. The lane is a hash of
 * the value that the payload has at the concurrency key. Returns null if the automation has no key, or the payload has no text, number or
 * boolean at the key.
 */
export function laneOf(
  { concurrency_key: path }: Pick<AutomationRow, 'concurrency_key'>,
  payload: unknown,
): string | null {
  if (path === null) return null;
  let value = payload;
  for (const name of path.split('.')) {
    if (typeof value !== 'object' || value === null || Array.isArray(value) || !Object.hasOwn(value, name)) return null;
    value = Reflect.get(value, name);
  }
  if (!['string', 'number', 'boolean'].includes(typeof value)) return null;
  return createHash('sha256').update(JSON.stringify(value)).digest('hex');
}
