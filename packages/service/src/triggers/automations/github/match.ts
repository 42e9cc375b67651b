/** Decides whether an event of GitHub matches a trigger, and why. */

import type { GithubEvent, GithubFilter, GithubFilterKey, Matcher } from '@runyard/contract/webhooks/github-events';
import { shorten } from '@runyard/contract/wire/shorten';
import { matchesPathPattern, type Steps } from './path-pattern.ts';
import type { ReadGithubEvent } from './read-delivery.ts';

/** One condition and its outcome, in the form of the checks of a payload filter. */
export interface GithubCheck {
  readonly check: 'event' | 'in' | 'not_in';
  /** Member of the filter; absent if the condition is about the name of the event. */
  readonly path?: string;
  readonly passed: boolean;
  readonly reason: string;
}

export interface GithubMatch {
  readonly would_trigger: boolean;
  readonly checks: readonly GithubCheck[];
}

/** Largest number of comparison steps for all path patterns of a filter. */
const maxSteps = 500_000;
/** Largest number of values that a reason lists. */
const maxListed = 5;

/**
 * Compares the events of a delivery with a trigger. `readGithubDelivery` returns these events. `steps`: the comparison steps that are
 * left for path patterns.
 */
export function matchGithubTrigger(
  events: readonly ReadGithubEvent[],
  trigger: { readonly event: GithubEvent; readonly filter?: GithubFilter | undefined },
  steps: Steps = { left: maxSteps },
): GithubMatch {
  const found = events.find(({ event }) => event === trigger.event);
  if (found?.untrusted !== undefined)
    return { would_trigger: false, checks: [{ check: 'event', passed: false, reason: found.untrusted }] };
  const names = events.map(({ event }) => event).join(', ') || 'no event that automations can name';
  const event: GithubCheck = { check: 'event', passed: found !== undefined, reason: `the delivery is ${names}` };
  if (found === undefined) return { would_trigger: false, checks: [event] };
  // The caller compares `own_pull_request` with what the service knows about the sender of the delivery.
  const { own_pull_request: _, ...matchers } = trigger.filter ?? {};
  const checks = Object.entries(matchers).flatMap(([key, matcher]) =>
    matcher === undefined ? [] : checksOf(key as GithubFilterKey, matcher, found, steps),
  );
  return { would_trigger: checks.every(({ passed }) => passed), checks: [event, ...checks] };
}

type Value = string | number;

function checksOf(key: GithubFilterKey, matcher: Matcher, { facts }: ReadGithubEvent, steps: Steps): GithubCheck[] {
  const given = facts[key];
  return (['in', 'not_in'] as const).flatMap((check): GithubCheck[] => {
    const values = matcher[check];
    if (values === undefined) return [];
    // If GitHub's payload does not contain the value, neither `in` nor `not_in` passes, because an unwanted run is worse than a missing run.
    if (given === undefined) {
      const reason =
        key === 'branches'
          ? 'the event is about a tag, or about no branch of this repository'
          : "GitHub's payload of this event does not have this value";
      return [{ check, path: key, passed: false, reason }];
    }
    const isListed = holdsOne(key, given, values, steps);
    const stopped = steps.left < 0;
    const reason = stopped
      ? 'the paths and patterns need too many comparisons'
      : `found ${listed(given)}; ${check === 'in' ? 'allowed' : 'not allowed'}: ${listed(values)}`;
    return [{ check, path: key, passed: !stopped && isListed === (check === 'in'), reason }];
  });
}

function holdsOne(key: GithubFilterKey, given: readonly Value[], values: readonly Value[], steps: Steps): boolean {
  const known = new Set(given.map((value) => comparable(key, value)));
  if (values.some((value) => known.has(comparable(key, value)))) return true;
  if (key !== 'paths') return false;
  const patterns = values.filter((value) => typeof value === 'string').filter((value) => /[*?]/.test(value));
  return patterns.some((pattern) =>
    given.some((path) => steps.left >= 0 && matchesPathPattern(pattern, String(path), steps)),
  );
}

/** Members of a filter whose values are case-sensitive on GitHub. */
const withCase = new Set<GithubFilterKey>(['branches', 'base_branches', 'paths', 'workflows']);

function comparable(key: GithubFilterKey, value: Value): Value {
  if (typeof value === 'number') return value;
  if (key === 'branches' || key === 'base_branches') return value.replace(/^refs\/heads\//, '');
  const name = key === 'mentioned' ? value.replace(/^@/, '') : value;
  return withCase.has(key) ? name : name.toLowerCase();
}

function listed(values: readonly Value[]): string {
  const first = values.slice(0, maxListed).map((value) => JSON.stringify(shorten(String(value), 80)));
  if (values.length === 0) return 'nothing';
  return values.length > maxListed ? `${first.join(', ')} and ${values.length - maxListed} more` : first.join(', ');
}
