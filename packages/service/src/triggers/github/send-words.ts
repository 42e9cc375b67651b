/** Sends comments of people to the runs that they continue. */
import { hash } from 'node:crypto';
import type { RunFollowupRequest } from '@runyard/contract/runs/run-request';
import type { Logger } from 'pino';
import { type SendOutcome, sendFollowup } from '../../runs/runs/follow-ups/send.ts';
import { enqueueNotice } from '../../runs/subscriptions/channels.ts';
import { mayStartRuns } from '../../team/access/may-start-runs.ts';
import type { TokenScope } from '../../team/code-hosts/github-api.ts';
import { type AskDeps, askForPlace } from './ask-place.ts';
import { findPerson } from './people.ts';
import { type PlaceRow, readPlace, readRunOfPlace } from './places.ts';
import { storable } from './read-event.ts';
import { type ClaimedWord, claimWords, delayWord, readSendersOf, settleWord } from './words.ts';

export interface WordDeps extends AskDeps {
  readonly log: Logger;
  readonly followUps: Parameters<typeof sendFollowup>[0];
}

/** Why a comment did not reach its run. `why`: a sentence for the author of the comment; null: the author gets no message. */
type Refused = { readonly kind: 'refused'; readonly why: string | null };
type Outcome = { readonly kind: 'sent' } | Refused | { readonly kind: 'later'; readonly seconds: number };

const refused = (why: string | null): Refused => ({ kind: 'refused', why });
/** A comment waits this long for the end of a turn or for GitHub. */
const longestWaitSeconds = 6 * 3600;
const waitSeconds = 20;

/** The permissions with which the comments of a place are read and written. */
export const scopeOf = (place: PlaceRow): TokenScope => ({
  installationId: place.installation_id,
  repositoryId: place.repository_id,
  permissions: place.kind === 'issue' ? { issues: 'write' } : { issues: 'write', pull_requests: 'write' },
});

export const commentPath = (place: PlaceRow, kind: 'issue' | 'review', id: number): string =>
  `/repos/${place.repository}/${kind === 'issue' ? 'issues' : 'pulls'}/comments/${id}`;

/** Asks GitHub whether the account wrote this comment with these words. */
async function isWritten(deps: WordDeps, place: PlaceRow, word: ClaimedWord): Promise<boolean | 'away'> {
  const path = commentPath(place, word.comment_kind, word.comment_id);
  const answer = await askForPlace(deps, place, scopeOf(place).permissions, { method: 'GET', path });
  if (answer.kind === 'unavailable' || answer.kind === 'limited') return 'away';
  if (answer.kind === 'refused') return false;
  const { user, body } = Object(answer.body);
  return (
    Reflect.get(Object(user), 'id') === word.github_id && typeof body === 'string' && storable(body) === word.message
  );
}

/** Matches a comment that only decides, such as `@my-app approve`. */
const decision = /^\s*@[\w-]+[\s,:]+(approve|deny)[.!]?\s*$/i;

function requestOf(word: ClaimedWord, isFresh: boolean): RunFollowupRequest {
  const message = word.message ?? '';
  const decided = decision.exec(message)?.[1]?.toLowerCase();
  if (decided !== undefined && word.request_id !== null)
    return { decision: decided === 'approve' ? 'approve' : 'deny', request_id: word.request_id };
  return isFresh ? { message, workspace: 'changes' } : { message };
}

function outcomeOf(outcome: SendOutcome): Outcome {
  switch (outcome.kind) {
    case 'sent':
      return { kind: 'sent' };
    case 'not_found':
      return refused('The run was deleted before this comment reached it. Write the comment again to start a new one.');
    case 'lacks_right':
    case 'lacks_repository':
      return refused(
        'The sandbox of this run contains secrets or files that you may not use. Repeat the run as your own on its page, or ask its owner.',
      );
    case 'refused':
      return outcome.path === 'workspace'
        ? { kind: 'later', seconds: waitSeconds }
        : refused('The run does not ask this question any more. Write what you want it to do.');
    case 'full':
      return { kind: 'later', seconds: 60 };
    case 'policy_unavailable':
      return { kind: 'later', seconds: 60 };
    case 'policy_violation':
      return refused('The content policy of this installation does not allow this comment.');
    case 'storage_full':
      return refused('The team has no storage left.');
    case 'may_not_answer':
    case 'empty':
    case 'invalid':
    case 'unknown_attachment':
    case 'is_check':
    case 'idempotency_conflict':
      return refused('The run could not take this comment.');
  }
}

async function attempt(deps: WordDeps, word: ClaimedWord): Promise<Outcome> {
  const { db } = deps;
  const place = await readPlace(db, word.place_id);
  if (!place) return refused(null);
  // The link or the role may have ended since the comment arrived.
  const actor = { teamId: place.team_id, kind: 'user', uid: word.user_uid } as const;
  const isMember = (await mayStartRuns(db, [actor]))(actor);
  if (!isMember || (await findPerson(db, place.app_uid, word.github_id)) !== word.user_uid) return refused(null);
  const written = await isWritten(deps, place, word);
  if (written === 'away') return { kind: 'later', seconds: waitSeconds };
  if (!written) return refused('The comment was changed or deleted before it was read. Write a new one.');
  const of = await readRunOfPlace(db, word.place_id);
  const earlier = [of?.senderId, ...(await readSendersOf(db, word.run_id))];
  const isFresh = earlier.some((id) => id !== undefined && id !== word.github_id);
  const request = requestOf(word, isFresh);
  const creator = { kind: 'user', uid: word.user_uid } as const;
  return outcomeOf(
    await sendFollowup(deps.followUps, {
      actor: { teamId: place.team_id, creator, keyId: null, from: null },
      runId: word.run_id,
      request,
      once: {
        teamId: place.team_id,
        principal: 'github',
        key: word.id,
        // The hash has only the id, because a later attempt for the same comment may differ: it may begin anew.
        requestHash: hash('sha256', word.id, 'buffer'),
      },
    }),
  );
}

async function settle(deps: WordDeps, word: ClaimedWord, outcome: Outcome): Promise<void> {
  const { db } = deps;
  if (outcome.kind === 'later' && word.age_seconds < longestWaitSeconds)
    return await delayWord(db, word, outcome.seconds);
  const ended =
    outcome.kind === 'later' ? refused('The run could not take this comment in time. Write it again.') : outcome;
  await db.transaction(async (tx) => {
    if (!(await settleWord(tx, word, ended.kind === 'sent' ? 'sent' : 'refused'))) return;
    const place = ended.kind === 'refused' && ended.why !== null ? await readPlace(tx, word.place_id) : null;
    if (place && ended.kind === 'refused' && ended.why !== null)
      await enqueueNotice(tx, place.subscription_id, { place_id: place.id, notice: 'text', text: ended.why });
  });
}

/** Sends the comments that are due. Any number of processes may do this. */
export async function sendWords(deps: WordDeps): Promise<void> {
  for (const word of await claimWords(deps.db)) {
    try {
      await settle(deps, word, await attempt(deps, word));
    } catch (error) {
      // The comment is due again when its lease ends.
      deps.log.error({ err: error, run_id: word.run_id }, 'a comment could not be sent to its run');
      // A comment that always fails must not keep the later comments of the run waiting.
      if (word.age_seconds >= longestWaitSeconds) await settleWord(deps.db, word, 'refused');
    }
  }
}
