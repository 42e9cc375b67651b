/** Decides whether a delivery matches an automation, and why not. */

import { parsePayloadFilter } from '@runyard/contract/automations/payload-filter/parse';
import type { PayloadFilter } from '@runyard/contract/automations/payload-filter/plan';
import { Trigger } from '@runyard/contract/factories/files/triggers';
import type { GithubEvent, GithubFilter, Matcher } from '@runyard/contract/webhooks/github-events';
import { shorten } from '@runyard/contract/wire/shorten';
import type { AcceptedDelivery } from '../webhooks/ingest/accepted-delivery.ts';
import type { AutomationRow } from './automation-row.ts';
import { matchGithubTrigger } from './github/match.ts';
import { readGithubDelivery } from './github/read-delivery.ts';
import { type Budget, evaluatePayloadFilter, giveBack, takePart } from './payload-filter/evaluate.ts';
import { explainPayloadFilter } from './payload-filter/explain.ts';

/** Comparisons for all automations of a delivery. One filter takes at most 400,000. */
const maxComparisonsOfDelivery = 2_000_000;
/** Steps of the path patterns of one trigger of GitHub. */
const maxGithubSteps = 500_000;
const maxReasonLength = 500;
/** Conditions that a reason names. */
const maxNamed = 3;

/** A trigger that deliveries can match, in the form in which it is evaluated. */
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

/** Plans by automation and version: a trigger is parsed once. */
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
export type MatchedDelivery = Pick<AcceptedDelivery, 'webhookUid' | 'scheme' | 'event' | 'payload'>;

export type Match = { readonly matched: true } | { readonly matched: false; readonly reason: string };

type Check = { readonly path?: string; readonly passed: boolean; readonly reason: string };

const describe = (checks: readonly Check[]): string =>
  checks
    .filter(({ passed }) => !passed)
    .slice(0, maxNamed)
    .map(({ path, reason }) => (path === undefined ? reason : `${path}: ${reason}`))
    .join('; ');

/** Returns why the name of the event does not match; null: it does. */
function mismatchOfEvent({ in: wanted, not_in: excluded }: Matcher, event: string | null): string | null {
  const found = event === null ? 'no header names the event' : `found ${JSON.stringify(event)}`;
  const list = (names: readonly unknown[]) =>
    names
      .slice(0, maxNamed)
      .map((name) => JSON.stringify(name))
      .join(', ');
  if (wanted && (event === null || !wanted.includes(event))) return `events: ${found}; allowed: ${list(wanted)}`;
  return event !== null && excluded?.includes(event) ? `events: ${found}; not allowed: ${list(excluded)}` : null;
}

/** Returns why a trigger does not match; null: it does; undefined: it does not select the webhook. */
function mismatch(plan: Plan, delivery: MatchedDelivery, total: Budget): string | null | undefined {
  if (plan.provider === 'webhook') {
    if (!plan.webhookUids.includes(delivery.webhookUid)) return undefined;
    const ofEvent = mismatchOfEvent(plan.events, delivery.event);
    if (ofEvent !== null) return ofEvent;
    if (evaluatePayloadFilter(plan.payload, delivery.payload, total) === 'match') return null;
    return describe(explainPayloadFilter(plan.payload, delivery.payload, total).checks);
  }
  if (delivery.scheme !== 'github') return undefined;
  const steps = takePart(total, maxGithubSteps);
  const events = readGithubDelivery(delivery.event ?? '', delivery.payload);
  const { would_trigger: matches, checks } = matchGithubTrigger(events, plan, steps);
  giveBack(total, steps);
  return matches ? null : describe(checks);
}

/** Returns the comparison of automations with one delivery. The work of all comparisons together is bounded. */
export function matcherOf(delivery: MatchedDelivery): (automation: AutomationRow) => Match {
  const total: Budget = { left: maxComparisonsOfDelivery };
  return (automation) => {
    const reasons: string[] = [];
    for (const [index, plan] of plansOf(automation).entries()) {
      if (total.left <= 0) {
        reasons.push(`the filters of all automations need more than ${maxComparisonsOfDelivery} comparisons`);
        break;
      }
      const reason = plan === null ? undefined : mismatch(plan, delivery, total);
      if (reason === null) return { matched: true };
      if (reason !== undefined) reasons.push(`triggers[${index}]: ${reason}`);
    }
    return { matched: false, reason: shorten(reasons.join('. '), maxReasonLength) };
  };
}
