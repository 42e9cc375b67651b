/** Reads who caused an event of a GitHub App, and where. The payload is signed by GitHub; its texts are from anybody. */
import { mentionsIn } from '../automations/github/read-delivery.ts';

/** An issue, a pull request or a review thread. */
export interface PlaceOfEvent {
  readonly repositoryId: number;
  readonly repository: string;
  /** False also if the event does not say it. */
  readonly isPrivate: boolean;
  readonly kind: 'issue' | 'pull_request' | 'review_thread';
  readonly number: number;
  /** Id of the first comment of a review thread; 0: another place. */
  readonly threadId: number;
}

/** A new text that an account wrote. */
export interface TextOfEvent {
  /** `opening`: the body of a new issue or pull request. `review`: a comment on a line. */
  readonly kind: 'opening' | 'issue' | 'review' | 'submitted';
  readonly id: number;
  readonly body: string;
  /** The comments on lines that belong to a submitted review. */
  readonly comments: readonly string[];
}

/** The newest commit of a pull request. */
export interface HeadOfPullRequest {
  readonly commit: string;
  /** True also if the repository of the commit was deleted. */
  readonly isFork: boolean;
}

export interface AppEvent {
  readonly name: string;
  readonly action: string;
  readonly installationId: string | null;
  readonly repository: { readonly id: number; readonly name: string } | null;
  readonly sender: { readonly id: number; readonly login: string };
  /** True if a program wrote the text or caused the event. */
  readonly isByApp: boolean;
  /** True if only somebody with write access to the repository can cause the event. */
  readonly needsWriteAccess: boolean;
  readonly place: PlaceOfEvent | null;
  /** The head of the event's pull request. `unknown`: the event does not name it. Null: the event has no open pull request. */
  readonly head: HeadOfPullRequest | 'unknown' | null;
  readonly text: TextOfEvent | null;
}

/** Returns a nested member; undefined if there is none. */
export function at(value: unknown, ...path: readonly string[]): unknown {
  let found = value;
  for (const name of path) {
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, name)) return undefined;
    found = Reflect.get(found, name);
  }
  return found;
}

const idOf = (value: unknown): number | null =>
  typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : null;
export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
/** Returns a text as the database stores it: without U+0000. */
export const storable = (text: string): string => text.replaceAll('\0', '');

/** Matches `owner/repository`. */
const repositoryName = /^[A-Za-z0-9-]{1,39}\/[A-Za-z0-9._-]{1,100}$/;
/** Matches logins, also those of Apps (`name[bot]`) and of managed accounts (`name_company`). */
const loginPattern = /^[A-Za-z0-9_-]{1,60}(?:\[bot\])?$/;

/** The member of the payload with the new text, by the name and the action of the event. */
const textsOfEvents: Readonly<Record<string, readonly [member: string, kind: TextOfEvent['kind']]>> = {
  'issues opened': ['issue', 'opening'],
  'issue_comment created': ['comment', 'issue'],
  'pull_request opened': ['pull_request', 'opening'],
  'pull_request_review submitted': ['review', 'submitted'],
  'pull_request_review_comment created': ['comment', 'review'],
};

function placeOf(name: string, payload: unknown, repository: AppEvent['repository']): PlaceOfEvent | null {
  if (repository === null) return null;
  const isIssue = name === 'issues' || name === 'issue_comment';
  const isPull = name === 'pull_request' || name === 'pull_request_review' || name === 'pull_request_review_comment';
  const number = idOf(at(payload, isIssue ? 'issue' : 'pull_request', 'number'));
  if ((!isIssue && !isPull) || number === null || number > 2_000_000_000) return null;
  const of = {
    repositoryId: repository.id,
    repository: repository.name,
    isPrivate: at(payload, 'repository', 'private') === true,
    number,
  };
  if (name === 'pull_request_review_comment') {
    const threadId = idOf(at(payload, 'comment', 'in_reply_to_id')) ?? idOf(at(payload, 'comment', 'id'));
    return threadId === null ? null : { ...of, kind: 'review_thread', threadId };
  }
  const isPullRequest = isPull || at(payload, 'issue', 'pull_request') != null;
  return { ...of, kind: isPullRequest ? 'pull_request' : 'issue', threadId: 0 };
}

/** Returns the event with a pull request of a branch of the repository, whose head an event without a place is about. */
export const atPullRequest = (
  event: AppEvent,
  payload: unknown,
  { number, commit }: { readonly number: number; readonly commit: string },
): AppEvent =>
  event.repository === null
    ? event
    : {
        ...event,
        place: {
          repositoryId: event.repository.id,
          repository: event.repository.name,
          isPrivate: at(payload, 'repository', 'private') === true,
          kind: 'pull_request',
          number,
          threadId: 0,
        },
        head: { commit, isFork: false },
      };

/**
 * Returns the head of a pull request in the form of GitHub; null: it was merged, or there is none. The ids of the repositories decide whether
 * it is a fork, because people choose names.
 */
export function headOf(pull: unknown, repositoryId: number): HeadOfPullRequest | null {
  const commit = textOf(at(pull, 'head', 'sha'));
  if (!/^[0-9a-f]{40}$/.test(commit) || at(pull, 'merged_at') != null) return null;
  const base = idOf(at(pull, 'base', 'repo', 'id'));
  if (base !== repositoryId) return null;
  return { commit, isFork: idOf(at(pull, 'head', 'repo', 'id')) !== base };
}

/** The events that only somebody with write access can cause. A check of a fork does not belong to them. */
function needsWriteAccess(name: string, action: string, payload: unknown): boolean {
  switch (name) {
    case 'push':
      return true;
    case 'check_suite':
    case 'check_run':
      // A check of a fork has no branch of this repository.
      return action === 'rerequested' || textOf(at(payload, 'check_suite', 'head_branch')) !== '';
    case 'workflow_run':
      return idOf(at(payload, 'workflow_run', 'head_repository', 'id')) === idOf(at(payload, 'repository', 'id'));
    case 'pull_request':
      return action === 'closed' && at(payload, 'pull_request', 'merged') === true;
    default:
      return false;
  }
}

function commentsOf(payload: unknown): string[] {
  const comments = at(payload, 'review', 'comments');
  return Array.isArray(comments) ? comments.map((each) => textOf(at(each, 'body'))) : [];
}

/** Reads an event. Returns null if it has no sender, which no event that starts something lacks. */
export function readAppEvent(name: string, payload: unknown): AppEvent | null {
  const id = idOf(at(payload, 'sender', 'id'));
  const login = textOf(at(payload, 'sender', 'login'));
  if (id === null || !loginPattern.test(login)) return null;
  const action = textOf(at(payload, 'action'));
  const repositoryId = idOf(at(payload, 'repository', 'id'));
  const fullName = textOf(at(payload, 'repository', 'full_name'));
  const repository =
    repositoryId !== null && repositoryName.test(fullName) ? { id: repositoryId, name: fullName } : null;
  const installation = idOf(at(payload, 'installation', 'id'));
  const [member = '', kind] = Object.hasOwn(textsOfEvents, `${name} ${action}`)
    ? (textsOfEvents[`${name} ${action}`] ?? [])
    : [];
  const textId = kind === undefined ? null : idOf(at(payload, member, 'id'));
  const writer = idOf(at(payload, member, 'user', 'id'));
  const isByApp =
    textOf(at(payload, 'sender', 'type')) !== 'User' ||
    (kind !== undefined && (at(payload, member, 'performed_via_github_app') != null || writer !== id));
  const place = placeOf(name, payload, repository);
  return {
    name,
    action,
    installationId: installation === null ? null : String(installation),
    repository,
    sender: { id, login },
    isByApp,
    needsWriteAccess: needsWriteAccess(name, action, payload),
    place,
    head:
      place === null || place.kind === 'issue'
        ? null
        : name === 'issue_comment'
          ? 'unknown'
          : headOf(at(payload, 'pull_request'), place.repositoryId),
    text:
      kind === undefined || textId === null
        ? null
        : { kind, id: textId, body: storable(textOf(at(payload, member, 'body'))), comments: commentsOf(payload) },
  };
}

/** Returns whether a person's new text mentions the App, outside of code and quotes. */
export const mentionsApp = ({ text, sender, isByApp }: AppEvent, slug: string): boolean =>
  text !== null &&
  !isByApp &&
  [text.body, ...text.comments].some((body) => mentionsIn(body, sender.login).includes(slug));
