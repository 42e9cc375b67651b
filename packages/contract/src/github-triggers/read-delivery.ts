/** Reads deliveries of GitHub as the public events that automations name. */
import type { GithubEvent, GithubFilterKey } from './catalogue.ts';
import { mentionsIn } from './mentions.ts';

/** Values of an event for each member of a filter. An absent member is not in GitHub's payload. */
export type GithubFacts = { readonly [K in GithubFilterKey]?: readonly (string | number)[] };

/** One delivery can be several events: a pull request is opened, and its text mentions somebody. */
export interface ReadGithubEvent {
  readonly event: GithubEvent;
  readonly facts: GithubFacts;
}

/** Values of one fact that are compared, such as the paths of a push. */
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
 * Returns the public events of a delivery. `name` is the header X-GitHub-Event; `payload` is the parsed body, which may be anything.
 * Returns none for a delivery that is not a public event.
 */
export function readGithubDelivery(name: string, payload: unknown): ReadGithubEvent[] {
  const repos = texts([at(payload, 'repository', 'full_name')]);
  const action = text(at(payload, 'action'));
  const one = (event: GithubEvent | undefined, facts: GithubFacts): ReadGithubEvent[] =>
    event === undefined ? [] : [{ event, facts: { repos, ...facts } }];
  switch (name) {
    case 'push':
      return at(payload, 'deleted') === true ? [] : one('push', pushFacts(payload));
    case 'issues': {
      const facts = issueFacts(at(payload, 'issue'));
      const mention = action === 'opened' ? mentioned(payload, at(payload, 'issue', 'body')) : [];
      return [
        ...one(own(issueEvents, action), facts),
        ...(mention.length > 0 ? one('issue_mentioned', { ...facts, mentioned: mention }) : []),
      ];
    }
    case 'issue_comment': {
      const mention = action === 'created' ? mentioned(payload, at(payload, 'comment', 'body')) : [];
      const isPullRequest = at(payload, 'issue', 'pull_request') != null;
      const event = isPullRequest ? 'pull_request_mentioned' : 'issue_mentioned';
      return mention.length > 0 ? one(event, { ...issueFacts(at(payload, 'issue')), mentioned: mention }) : [];
    }
    case 'pull_request': {
      const facts = pullRequestFacts(payload);
      const mention = action === 'opened' ? mentioned(payload, at(payload, 'pull_request', 'body')) : [];
      return [
        ...one(pullRequestEvent(action, payload), facts),
        ...(mention.length > 0 ? one('pull_request_mentioned', { ...facts, mentioned: mention }) : []),
      ];
    }
    case 'pull_request_review': {
      const review_states = texts([at(payload, 'review', 'state')]);
      const mention = mentioned(payload, at(payload, 'review', 'body'));
      const facts = { ...pullRequestFacts(payload), review_states, mentioned: mention };
      return action === 'submitted' ? one('pull_request_review_submitted', facts) : [];
    }
    case 'pull_request_review_comment': {
      const mention = action === 'created' ? mentioned(payload, at(payload, 'comment', 'body')) : [];
      const facts = { ...pullRequestFacts(payload), mentioned: mention };
      return mention.length > 0 ? one('pull_request_mentioned', facts) : [];
    }
    case 'check_suite':
      if (action === 'rerequested') return one('check_suite_rerequested', {});
      return action === 'completed' ? one('check_suite_completed', checkFacts(at(payload, 'check_suite'))) : [];
    case 'check_run':
      return action === 'rerequested' ? one('check_run_rerequested', {}) : [];
    case 'workflow_run': {
      const workflows = texts([at(payload, 'workflow', 'name') ?? at(payload, 'workflow_run', 'name')]);
      const facts = { ...checkFacts(at(payload, 'workflow_run')), workflows };
      return action === 'completed' ? one('workflow_run_completed', facts) : [];
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
  return { branches: texts([at(payload, 'ref')]), paths: texts([...new Set(paths)]) };
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

const checkFacts = (check: unknown): GithubFacts => ({
  conclusions: texts([at(check, 'conclusion')]),
  branches: texts([at(check, 'head_branch')]),
});

/** Mentions of bots do not count, because two bots could answer each other forever. */
const mentioned = (payload: unknown, body: unknown): string[] =>
  at(payload, 'sender', 'type') === 'Bot' ? [] : mentionsIn(text(body));

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
