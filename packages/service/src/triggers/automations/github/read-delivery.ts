/** Reads deliveries of GitHub as the public events that automations name. */
import type { GithubEvent, GithubFilterKey } from '@runyard/contract/webhooks/github-events';

/** Finds the people and teams that a text on GitHub mentions. */

/** GitHub accepts texts of at most 65,536 characters. */
const maxLength = 70_000;
const maxMentions = 100;

/** Code, and comments that GitHub does not show. */
const hidden = [/^ {0,3}(```|~~~)[\s\S]*?(?:^ {0,3}\1|$(?![\s\S]))/gm, /`[^`\n]*`/g, /<!--[\s\S]*?(?:-->|$)/g];
/** A quoted line, also one in a list. */
const quoted = /^[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+){0,9}>.*$/gm;

/**
 * Returns logins and teams (`org/team`) that the text mentions with @, in lower case. Mentions in code, quoted lines and hidden comments do
 * not count. Mentions of the writer do not count either: a program that quotes the request in its answer would otherwise start itself
 * again. `writer`: the login of the author of the text.
 */
export function mentionsIn(text: string, writer = ''): string[] {
  const prose = [...hidden, quoted].reduce((rest, pattern) => rest.replaceAll(pattern, ' '), text.slice(0, maxLength));
  const found = prose.matchAll(/(?<![\w@/.-])@([a-z\d][a-z\d-]{0,38}(?:\/[a-z\d][\w-]{0,99})?)(?![\w])/gi);
  const names = [...found].slice(0, maxMentions).map(([, name = '']) => name.toLowerCase());
  return [...new Set(names)].filter((name) => name !== writer.toLowerCase());
}

/** Values of an event for each member of a filter. An absent member is not in GitHub's payload. */
export type GithubFacts = { readonly [K in GithubFilterKey]?: readonly (string | number)[] };

/** One delivery can contain several events: for example, a pull request is opened, and its text has a mention. */
export interface ReadGithubEvent {
  readonly event: GithubEvent;
  readonly facts: GithubFacts;
  /** Why the event starts nothing, whatever the filter is. Absent: a filter decides. */
  readonly untrusted?: string;
}

/** Largest number of values of one fact, such as the paths of a push, that are compared. */
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
 * Members that every payload of an event has. The signature does not cover the header that names the event, so a sender could repeat a recorded
 * payload under the name of another event.
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
 * Returns the public events of a delivery. `name` is the header X-GitHub-Event; `payload` is the parsed body, which may be anything.
 * Returns none for a delivery that is not a public event.
 */
export function readGithubDelivery(name: string, payload: unknown): ReadGithubEvent[] {
  const subject = own(subjects, name);
  if (subject === undefined || at(payload, subject) == null) return [];
  const repos = texts([at(payload, 'repository', 'full_name')]);
  const action = text(at(payload, 'action'));
  const one = (event: GithubEvent | undefined, facts: GithubFacts): ReadGithubEvent[] =>
    event === undefined ? [] : [{ event, facts: { repos, ...facts } }];
  switch (name) {
    case 'push':
      return at(payload, 'deleted') === true ? [] : one('push', pushFacts(payload));
    case 'issues': {
      const facts = eventFacts(payload, issueFacts(at(payload, 'issue')));
      const mention = action === 'opened' ? mentionFacts(payload, 'issue') : undefined;
      return [
        ...one(own(issueEvents, action), facts),
        ...(mention ? one('issue_mentioned', { ...facts, ...mention }) : []),
      ];
    }
    case 'issue_comment': {
      const mention = action === 'created' ? mentionFacts(payload, 'comment') : undefined;
      const isPullRequest = at(payload, 'issue', 'pull_request') != null;
      const event = isPullRequest ? 'pull_request_mentioned' : 'issue_mentioned';
      return mention ? one(event, { ...issueFacts(at(payload, 'issue')), ...mention }) : [];
    }
    case 'pull_request': {
      const facts = eventFacts(payload, pullRequestFacts(payload));
      const mention = action === 'opened' ? mentionFacts(payload, 'pull_request') : undefined;
      return [
        ...one(pullRequestEvent(action, payload), facts),
        ...(mention ? one('pull_request_mentioned', { ...facts, ...mention }) : []),
      ];
    }
    case 'pull_request_review': {
      const review_states = texts([at(payload, 'review', 'state')]);
      const facts = { ...pullRequestFacts(payload), review_states, ...textFacts(payload, 'review') };
      return action === 'submitted' ? one('pull_request_review_submitted', facts) : [];
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
  // A tag belongs to no branch, so a filter on branches never matches it, not even one that only excludes branches.
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

/** A check suite of a fork has no branch. */
function checkFacts(check: unknown): GithubFacts {
  const branches = texts([at(check, 'head_branch')]);
  return { conclusions: texts([at(check, 'conclusion')]), ...(branches.length > 0 ? { branches } : {}) };
}

/**
 * Replaces the present labels and assignees of an issue or pull request with the values of the event: the added label, or the person to
 * whom it was assigned. Six labels that are added at once arrive as six deliveries, and each delivery lists all six labels.
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

/** The members of a delivery that have a text of a person. */
type Written = 'issue' | 'comment' | 'pull_request' | 'review';

/** Returns who wrote the new text and whom it mentions. Mentions of bots do not count, because two bots could answer each other forever. */
function textFacts(payload: unknown, member: Written) {
  const writer = text(at(payload, member, 'user', 'login'));
  const isBot = at(payload, 'sender', 'type') === 'Bot';
  return {
    mentioned: isBot ? [] : mentionsIn(text(at(payload, member, 'body')), writer),
    writers: texts([at(payload, member, 'user', 'login')]),
    associations: texts([at(payload, member, 'author_association')]),
  };
}

/** Returns the facts about a new text with mentions; undefined if the text has no mentions. */
function mentionFacts(payload: unknown, member: Written) {
  const facts = textFacts(payload, member);
  return facts.mentioned.length > 0 ? facts : undefined;
}

/**
 * Returns why a workflow run starts nothing: it ran for the code of another repository, and the owner of that repository chooses its branch
 * names. Returns undefined if it ran for a branch of this repository.
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
