/**
 * Shows the state of a run as a check run on the head of its pull request. GitHub has one check run for each run, which is edited in place
 * until the run pushes another commit.
 * Its `external_id` is the id of the run, by which a check run whose creation got no answer is found.
 */
import { hash } from 'node:crypto';
import type { RunItem } from '@runyard/contract/runs/runs';
import type { RunState } from '@runyard/contract/runs/states';
import type { SendOutcome } from '../../../runs/subscriptions/send.ts';
import type { GithubAnswer, GithubAppKey, GithubRequest } from '../../../team/code-hosts/github-api.ts';
import { checkKeyOf } from '../../../triggers/github/check-runs.ts';
import {
  leaseComment,
  limitReached,
  markCommentAsked,
  maxPerDay,
  recordComment,
  releaseComment,
  settleComment,
} from '../../../triggers/github/comments.ts';
import type { PlaceRow } from '../../../triggers/github/places.ts';
import type { Annotation } from './annotations.ts';
import { plainLine } from './sanitize.ts';
import { answered, failed, idOf, outcomeOf, type WriterDeps } from './write-comment.ts';

interface CheckTarget {
  readonly app: GithubAppKey;
  readonly place: PlaceRow;
  /** The head of the pull request that the run works on or has opened. */
  readonly commit: string;
  readonly page: string;
  readonly runId: string;
}

/** The content of the check run. The text is clean already. */
interface CheckView {
  readonly run: RunItem;
  readonly text: string;
  readonly annotations: readonly Annotation[];
}

/** `refused`: GitHub accepts no check run of this run, such as from an App without the permission. */
type CheckOutcome = SendOutcome | { readonly kind: 'refused'; readonly reason: string };

/** GitHub accepts this number of annotations in one request. */
const maxAnnotations = 50;

const states: Readonly<Record<RunState, { status: string; conclusion?: string; title: string }>> = {
  QUEUED: { status: 'queued', title: 'Waiting for a free place' },
  PENDING: { status: 'queued', title: 'Waiting for a free place' },
  CLAIMED: { status: 'queued', title: 'Waiting for a free place' },
  INPROGRESS: { status: 'in_progress', title: 'At work' },
  BLOCKED: { status: 'completed', conclusion: 'action_required', title: 'Needs an answer' },
  SUCCEEDED: { status: 'completed', conclusion: 'success', title: 'Done' },
  FAILED: { status: 'completed', conclusion: 'failure', title: 'Failed' },
  ERROR: { status: 'completed', conclusion: 'failure', title: 'Could not be done' },
  CANCELLED: { status: 'completed', conclusion: 'cancelled', title: 'Stopped' },
};

/** Returns the body of the request, without the annotations. */
function bodyOf({ run, text }: CheckView, page: string) {
  const { status, conclusion, title } = states[run.state];
  return {
    status,
    ...(conclusion === undefined ? {} : { conclusion }),
    details_url: page,
    output: { title, summary: text },
  };
}

/** Ends the check run on a commit after which the run has pushed another one. */
const ofOlderCommit = (page: string) => ({
  status: 'completed',
  conclusion: 'neutral',
  output: { title: 'The run has pushed a newer commit', summary: page },
});

/** A rule of a branch names a check, so the name stays the same in all runs of an automation. */
const nameOf = ({ agent_config: config }: RunItem): string =>
  config?.name === undefined ? 'Runyard' : `Runyard: ${plainLine(config.name, 60)}`;

/**
 * Creates the check run of the run, or changes it if the run has changed. Calls `read` while no other process writes the check run. `read`
 * returns null if the run was deleted.
 */
export async function writeCheckRun(
  { db, api }: WriterDeps,
  { app, place, commit, page, runId }: CheckTarget,
  read: () => Promise<CheckView | null>,
): Promise<CheckOutcome> {
  const key = checkKeyOf(runId);
  await recordComment(db, key, place.id, null);
  const leased = await leaseComment(db, key);
  if (!leased) return failed('another process writes this check run now');
  const give = async <T>(outcome: T): Promise<T> => {
    await releaseComment(db, leased);
    return outcome;
  };
  const scope = {
    installationId: place.installation_id,
    repositoryId: place.repository_id,
    permissions: { checks: 'write' },
  } as const;
  const ask = (request: GithubRequest) => api.asInstallation(app, scope, request);
  const checks = `/repos/${place.repository}/check-runs`;
  try {
    const view = await read();
    if (view === null) return await give(answered(204));
    const body = bodyOf(view, page);
    const textHash = hash('sha256', JSON.stringify([body, view.annotations]), 'buffer');
    const isMoved = leased.head_sha !== null && leased.head_sha !== commit;
    if (leased.is_deleted || (!isMoved && leased.text_hash?.equals(textHash))) return await give(answered(200));
    const mayExist = leased.asked_at !== null;
    // Each request adds its annotations, so they are sent only if GitHub has none.
    const wantsSeen = mayExist && (isMoved || leased.comment_id === null || view.annotations.length > 0);
    const seen = wantsSeen ? await findCheckRun(ask, { repository: place.repository, commit, app, runId }) : null;
    if (seen?.kind === 'limited' || seen?.kind === 'unavailable') return await give(outcomeOf(seen));
    const known = seen?.kind === 'ok' ? Object(seen.body) : undefined;
    const id = (isMoved ? null : leased.comment_id) ?? idOf(known);
    const isAnnotated = Number(Object(known?.output).annotations_count ?? 0) > 0;
    const annotations = isAnnotated ? [] : view.annotations.slice(0, maxAnnotations);
    const full = mayExist ? null : await limitReached(db, place.id);
    if (full) return await give(failed(`the daily limit of ${maxPerDay[full]} texts for this ${full} is reached`));
    if (!(await markCommentAsked(db, leased))) return failed('the attempt took too long');
    if (isMoved && leased.comment_id !== null)
      await ask({ method: 'PATCH', path: `${checks}/${leased.comment_id}`, body: ofOlderCommit(page) });
    const sent = { ...body, output: { ...body.output, annotations } };
    const answer = await ask(
      id === null
        ? {
            method: 'POST',
            path: checks,
            body: { name: nameOf(view.run), head_sha: commit, external_id: runId, ...sent },
          }
        : { method: 'PATCH', path: `${checks}/${id}`, body: sent },
    );
    if (answer.kind !== 'ok') {
      if (answer.kind !== 'refused') return await give(outcomeOf(answer));
      // It is not tried again for this run.
      await settleComment(db, leased, { requestId: null, isDeleted: true });
      return { kind: 'refused', reason: `GitHub accepts no check run of this App: ${answer.message}` };
    }
    const made = id ?? idOf(answer.body);
    if (made === null) return await give(failed('GitHub named no check run'));
    await settleComment(db, leased, { requestId: null, commentId: made, hash: textHash, headSha: commit });
    return answered(200);
  } catch (error) {
    await releaseComment(db, leased);
    throw error;
  }
}

/** Returns the check run on the commit that has the id of the run and was made by the App itself. */
async function findCheckRun(
  ask: (request: GithubRequest) => Promise<GithubAnswer>,
  { repository, commit, app, runId }: { repository: string; commit: string; app: GithubAppKey; runId: string },
): Promise<GithubAnswer> {
  const query = new URLSearchParams({ app_id: app.appId, filter: 'all', per_page: '100' });
  const answer = await ask({
    method: 'GET',
    path: `/repos/${repository}/commits/${commit}/check-runs?${query}`,
    maxBytes: 16 * 1024 * 1024,
  });
  if (answer.kind !== 'ok') return answer;
  const { check_runs: all } = Object(answer.body);
  const found = (Array.isArray(all) ? all : []).find((each) => Object(each).external_id === runId);
  return { ...answer, body: found };
}
