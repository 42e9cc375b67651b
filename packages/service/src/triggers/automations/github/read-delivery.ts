/** Reads which events a webhook delivery of GitHub contains. Automations name these events in their triggers. */
import type { GithubEvent, GithubFilterKey } from '@runyard/contract/webhooks/github-events';

/** GitHub accepts texts of at most 65,536 characters. */
const maxLength = 70_000;
const maxMentions = 100;

/** Matches code, and comments that GitHub does not show. */
const hidden = [/^ {0,3}(```|~~~)[\s\S]*?(?:^ {0,3}\1|$(?![\s\S]))/gm, /`[^`\n]*`/g, /<!--[\s\S]*?(?:-->|$)/g];
/** Matches a quoted line, also inside of a list. */
const quoted = /^[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+){0,9}>.*$/gm;

/**
 * Returns logins and teams (`org/team`) that the text mentions with @, in lower case. Mentions in code, quoted lines and hidden comments do
 * not count. A mention of the writer does not count either. Otherwise a program that quotes the request in its answer would start
 * itself again. `writer`: the login of the author of the text.
 */
export function mentionsIn(text: string, writer = ''): string[] {
  const prose = [...hidden, quoted].reduce((rest, pattern) => rest.replaceAll(pattern, ' '), text.slice(0, maxLength));
  const found = prose.matchAll(/(?<![\w@/.-])@([a-z\d][a-z\d-]{0,38}(?:\/[a-z\d][\w-]{0,99})?)(?![\w])/gi);
  const names = [...found].slice(0, maxMentions).map(([, name = '']) => name.toLowerCase());
  return [...new Set(names)].filter((name) => name !== writer.toLowerCase());
}

/** The values of an event, by the member of a filter that is compared with them. Absent: GitHub's payload of this event has no such value. */
export type GithubFacts = { readonly [K in GithubFilterKey]?: readonly (string | number)[] };

/** One delivery can contain several events: for example, a pull request is opened, and its text has a mention. */
export interface ReadGithubEvent {
  readonly event: GithubEvent;
  readonly facts: GithubFacts;
  /** Why the event starts no run, even if the filter matches. Absent: the filter decides. */
  readonly untrusted?: string;
}

/** Largest number of values that are compared with one member of a filter, for example the paths of a push. */
const maxValues = 5_000;

const issueEvents: Readonly<Record<string, GithubEvent>> = {
  opened: 'issue_created',
  labeled: 'issue_labeled',
  assigned: 'issue_assigned',
};
const pullRequestEvents: Readonly<Record<string, GithubEvent>> = {
  opened: 'pull_request_opened',
  ready_for_review: 'pull_request_ready',
  labeled: 'pull_request_labeled',
  synchronize: 'pull_request_synchronized',
  reopened: 'pull_request_reopened',
  assigned: 'pull_request_assigned',
  review_requested: 'pull_request_review_requested',
};

/**
 * For each event, a member that all its payloads have. The signature does not cover the header that names the event. So a sender could
 * send a recorded payload again under the name of another event; the missing member shows this.
 */
const subjects: Readonly<Record<string, string>> = {
  push: 'ref',
  issues: 'issue',
  issue_comment: 'issue',
  pull_request: 'pull_request',
  pull_request_review: 'review',
  pull_request_review_comment: 'comment',
  check_suite: 'check_suite',
  check_run: 'check_run',
  workflow_run: 'workflow_run',
};

/**
 * Returns the events of a delivery that automations can name. `name` is the header X-GitHub-Event; `payload` is the parsed body, which
 * may be anything.
 * Returns an empty list if the delivery contains no such event.
 */
export function readGithubDelivery(name: string, payload: unknown): ReadGithubEvent[] {
  const subject = own(subjects, name);
  if (subject === undefined || at(payload, subject) == null) return [];
  const repos = texts([at(payload, 'repository', 'full_name')]);
  const action = text(at(payload, 'action'));
  const one = (event: GithubEvent | undefined, facts: GithubFacts): ReadGithubEvent[] =>
    event === undefined ? [] : [{ event, facts: { repos, ...facts } }];
  const byLabel = (event: GithubEvent, of: unknown, facts: GithubFacts): ReadGithubEvent[] => {
    // The service adds this member for the label of its factory (`triggers/github/complete-event.ts`). GitHub's payloads have no such member.
    const mentioned = texts(list(at(of, 'runyard', 'mentioned')));
    return mentioned.length === 0
      ? []
      : one(event, { ...facts, mentioned, writers: texts([at(of, 'sender', 'login')]) });
  };
  switch (name) {
    case 'push':
      return at(payload, 'deleted') === true ? [] : one('push', pushFacts(payload));
    case 'issues': {
      const facts = eventFacts(payload, { ...issueFacts(at(payload, 'issue')), ...associationOf(payload, 'issue') });
      const mention = action === 'opened' ? mentionFacts(payload, 'issue') : undefined;
      return [
        ...one(own(issueEvents, action), facts),
        ...(mention ? one('issue_mentioned', { ...facts, ...mention }) : []),
        ...(action === 'labeled' ? byLabel('issue_mentioned', payload, facts) : []),
      ];
    }
    case 'issue_comment': {
      const mention = action === 'created' ? mentionFacts(payload, 'comment') : undefined;
      const isPullRequest = at(payload, 'issue', 'pull_request') != null;
      const event = isPullRequest ? 'pull_request_mentioned' : 'issue_mentioned';
      return mention ? one(event, { ...issueFacts(at(payload, 'issue')), ...mention }) : [];
    }
    case 'pull_request': {
      const facts = eventFacts(payload, { ...pullRequestFacts(payload), ...associationOf(payload, 'pull_request') });
      const mention = action === 'opened' ? mentionFacts(payload, 'pull_request') : undefined;
      return [
        ...one(pullRequestEvent(action, payload), facts),
        ...(mention ? one('pull_request_mentioned', { ...facts, ...mention }) : []),
        ...(action === 'labeled' ? byLabel('pull_request_mentioned', payload, facts) : []),
      ];
    }
    case 'pull_request_review': {
      if (action !== 'submitted') return [];
      const review_states = texts([at(payload, 'review', 'state')]);
      const facts = { ...pullRequestFacts(payload), review_states, ...textFacts(payload, 'review') };
      const { review_states: _, ...ofMention } = facts;
      return [
        ...one('pull_request_review_submitted', facts),
        ...(facts.mentioned.length > 0 ? one('pull_request_mentioned', ofMention) : []),
      ];
    }
    case 'pull_request_review_comment': {
      const mention = action === 'created' ? mentionFacts(payload, 'comment') : undefined;
      return mention ? one('pull_request_mentioned', { ...pullRequestFacts(payload), ...mention }) : [];
    }
    case 'check_suite':
      if (action === 'rerequested') return one('check_suite_rerequested', {});
      return action === 'completed' ? one('check_suite_completed', checkFacts(at(payload, 'check_suite'))) : [];
    case 'check_run':
      return action === 'rerequested' ? one('check_run_rerequested', {}) : [];
    case 'workflow_run': {
      const workflows = texts([at(payload, 'workflow', 'name') ?? at(payload, 'workflow_run', 'name')]);
      const facts = { ...checkFacts(at(payload, 'workflow_run')), workflows };
      const untrusted = faultOfWorkflowRun(payload);
      const events = action === 'completed' ? one('workflow_run_completed', facts) : [];
      return events.map((event) => ({ ...event, ...(untrusted === undefined ? {} : { untrusted }) }));
    }
    default:
      return [];
  }
}

function pullRequestEvent(action: string, payload: unknown): GithubEvent | undefined {
  if (action !== 'closed') return own(pullRequestEvents, action);
  return at(payload, 'pull_request', 'merged') === true ? 'pull_request_merged' : 'pull_request_closed';
}

function pushFacts(payload: unknown): GithubFacts {
  const paths = list(at(payload, 'commits')).flatMap((commit) =>
    ['added', 'modified', 'removed'].flatMap((kind) => list(at(commit, kind))),
  );
  const ref = text(at(payload, 'ref'));
  // A tag belongs to no branch. Without the member `branches`, a filter on branches never matches, even if it only excludes branches.
  const branches = ref.startsWith('refs/tags/') ? {} : { branches: texts([ref]) };
  return { ...branches, paths: texts([...new Set(paths)]) };
}

const issueFacts = (issue: unknown): GithubFacts => ({
  labels: texts(list(at(issue, 'labels')).map((label) => at(label, 'name'))),
  assignees: texts(list(at(issue, 'assignees')).map((user) => at(user, 'login'))),
  authors: texts([at(issue, 'user', 'login')]),
});

function pullRequestFacts(payload: unknown): GithubFacts {
  const pullRequest = at(payload, 'pull_request');
  const number = at(pullRequest, 'number');
  return {
    ...issueFacts(pullRequest),
    base_branches: texts([at(pullRequest, 'base', 'ref')]),
    pr_numbers: typeof number === 'number' ? [number] : [],
    reviewers: texts([at(payload, 'requested_reviewer', 'login')]),
    reviewer_teams: texts([at(payload, 'requested_team', 'slug')]),
  };
}

/** Returns the values of a check suite or workflow run. A check suite of a fork has no branch. */
function checkFacts(check: unknown): GithubFacts {
  const branches = texts([at(check, 'head_branch')]);
  return { conclusions: texts([at(check, 'conclusion')]), ...(branches.length > 0 ? { branches } : {}) };
}

/**
 * If the event adds a label or an assignee, returns only the added one instead of all labels or assignees of the issue or pull
 * request. Otherwise a filter would match too often: if a person adds six labels at once, six deliveries arrive, and each of them
 * lists all six labels.
 */
function eventFacts(payload: unknown, state: GithubFacts): GithubFacts {
  switch (text(at(payload, 'action'))) {
    case 'labeled':
      return { ...state, labels: texts([at(payload, 'label', 'name')]) };
    case 'assigned':
      return { ...state, assignees: texts([at(payload, 'assignee', 'login')]) };
    default:
      return state;
  }
}

/** The members of a payload that contain a text which an account wrote. */
type Written = 'issue' | 'comment' | 'pull_request' | 'review';

/**
 * Returns who wrote the new text and whom the text mentions. A mention in a text that a bot sent does not count, because otherwise two
 * bots could answer each other forever.
 */
function textFacts(payload: unknown, member: Written) {
  const writer = text(at(payload, member, 'user', 'login'));
  const isBot = at(payload, 'sender', 'type') === 'Bot';
  // The service adds the comments of a review, which GitHub's event does not have (`triggers/github/read-review.ts`).
  const bodies = [at(payload, member), ...list(at(payload, member, 'comments'))].map((each) => text(at(each, 'body')));
  return {
    mentioned: isBot ? [] : [...new Set(bodies.flatMap((body) => mentionsIn(body, writer)))].slice(0, maxMentions),
    writers: texts([at(payload, member, 'user', 'login')]),
    ...associationOf(payload, member),
  };
}

/** Returns the association of the author of an issue, a pull request or a text with the repository. */
const associationOf = (payload: unknown, member: Written): GithubFacts => ({
  associations: texts([at(payload, member, 'author_association')]),
});

/** Returns the facts about a new text with mentions; undefined if the text has no mentions. */
function mentionFacts(payload: unknown, member: Written) {
  const facts = textFacts(payload, member);
  return facts.mentioned.length > 0 ? facts : undefined;
}

/**
 * Returns why a workflow run starts no run: it ran for another repository, such as a fork, whose owner can choose any branch names.
 * Returns undefined if the workflow ran for a branch of this repository.
 */
function faultOfWorkflowRun(payload: unknown): string | undefined {
  const head = text(at(payload, 'workflow_run', 'head_repository', 'full_name'));
  const name = text(at(payload, 'repository', 'full_name'));
  if (head !== '' && head.toLowerCase() === name.toLowerCase()) return undefined;
  return `the workflow ran for ${head === '' ? 'a repository that GitHub does not name' : `the repository ${head}`}, not for ${name}: the names of its branches are not to be trusted`;
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '');
const texts = (values: readonly unknown[]): string[] =>
  values.filter((value) => typeof value === 'string').slice(0, maxValues);
const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const own = <T>(map: Readonly<Record<string, T>>, key: string): T | undefined =>
  Object.hasOwn(map, key) ? map[key] : undefined;

/** Returns a nested member, `undefined` if the payload has none. */
function at(value: unknown, ...path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (parent, key) =>
      typeof parent === 'object' && parent !== null && Object.hasOwn(parent, key)
        ? (parent as Record<string, unknown>)[key]
        : undefined,
    value,
  );
}
