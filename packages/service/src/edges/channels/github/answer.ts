/**
 * Writes on GitHub for a run, with a token of the App that is limited to one repository. The run has no such token. It may write only to
 * the place whose event started it, and to pull requests that the service opened for it.
 */
import { hash } from 'node:crypto';
import type {
  GithubAnswerRequest,
  GithubAnswerResponse,
  GithubToolName,
} from '@runyard/contract/environments/github-tools';
import { whileLeased } from '../../../platform/uploads/lease.ts';
import { whyRepositoriesStay } from '../../../runs/executions/plan-mode.ts';
import { readCodeHostUser } from '../../../runs/executions/run-tokens/present-rights.ts';
import type { RunSession } from '../../../runs/executions/run-tokens/sessions.ts';
import { appendTimelineEvent } from '../../../runs/executions/timeline/timeline.ts';
import { canonicalUrl } from '../../../runs/files/artifacts/external-reference.ts';
import { hasOpened } from '../../../runs/files/artifacts/pull-requests.ts';
import type { OpenedPullRequest } from '../../../runs/repositories/pull-requests/open.ts';
import { readGithubTools } from '../../../runs/runs/github-tools.ts';
import { recordAction } from '../../../team/access/audit/record.ts';
import { mayStartRuns } from '../../../team/access/may-start-runs.ts';
import type { GithubAnswer, GithubAppKey, GithubHost, GithubRequest } from '../../../team/code-hosts/github-api.ts';
import { withoutSecrets } from '../../../team/redaction/agent-text.ts';
import {
  countAnswers,
  placeOfPullRequest,
  pullRequestAt,
  recordAnswer,
  takeBackAnswer,
} from '../../../triggers/github/answers.ts';
import { type AppRow, readApp, readAppKey } from '../../../triggers/github/apps.ts';
import {
  leaseComment,
  limitReached,
  markCommentAsked,
  maxPerDay,
  releaseComment,
  settleComment,
} from '../../../triggers/github/comments.ts';
import { githubHostOf } from '../../../triggers/github/hosts.ts';
import { findInstallationOfOwner } from '../../../triggers/github/installations.ts';
import { type PlaceRow, readPlace, readPlaceOfRun } from '../../../triggers/github/places.ts';
import { type AnswerTool, answerTools } from './answer-tools.ts';
import type { GithubChannelDeps } from './deliver.ts';
import { visibleValue } from './sanitize.ts';
import { findLost, markerOf } from './write-comment.ts';

export type AnswerDeps = Pick<GithubChannelDeps, 'db' | 'vault' | 'api' | 'settings' | 'executionDeps'>;

/** Why nothing was written, as a sentence for the agent. */
type NotWritten = Exclude<OpenedPullRequest, { kind: 'open' }>;
type Answered = { readonly kind: 'written'; readonly response: GithubAnswerResponse } | NotWritten;

const refused = (message: string): NotWritten => ({ kind: 'refused', message });
const conflict = (message: string): NotWritten => ({ kind: 'conflict', message });

/** Maximum number of attempts of a run, also those that GitHub refuses and those that repeat a request. */
const maxTried = 200;
/** Maximum number of requests of one tool: a pull request of 900 review threads is read in ten. */
const maxRequests = 10;

interface Target {
  readonly place: PlaceRow;
  readonly app: AppRow;
  readonly key: GithubAppKey;
  readonly host: GithubHost;
}

/** Writes what the tool wants. Requests of the same run are handled one after another, so that the limits hold. */
export async function answerOnGithub(
  deps: AnswerDeps,
  session: RunSession,
  request: GithubAnswerRequest,
): Promise<Answered> {
  const { db } = deps;
  const stays = await whyRepositoriesStay(db, session.executionId);
  if (stays !== undefined) return refused(`Nothing was written: ${stays}.`);
  const { tool } = request;
  const most = (await readGithubTools(db, session.runId))[tool];
  if (most === undefined)
    return refused(`This run may not use ${tool}: github_tools of its automation or environment does not name it.`);
  // The token of the App belongs to the team, like its other credentials of code hosts.
  const { without } = await readCodeHostUser(db, session);
  if (without?.team !== undefined) return refused(`This run may not write on GitHub: ${without.team}`);
  const lease = { name: `github-answer/${session.runId}`, most: 1 };
  const answered = await whileLeased(db, lease, async () => {
    const key = keyOf(session, request);
    const { used, tried } = await countAnswers(db, { runId: session.runId, tool, key });
    if (used >= most) return conflict(`The run has used ${tool} ${used} times, the limit of github_tools.`);
    if (tried >= maxTried)
      return conflict(`The run has tried to write on GitHub ${tried} times, the limit of a run. Do not try again.`);
    const target = await targetOf(deps, session, request.input.pull_request);
    return 'place' in target ? await writeOnce(deps, session, { request, target, key }) : target;
  });
  return answered === 'busy' ? { kind: 'busy', message: 'The run is writing on GitHub at the moment.' } : answered;
}

async function targetOf(
  deps: AnswerDeps,
  session: RunSession,
  address: string | undefined,
): Promise<Target | NotWritten> {
  const { db, vault, settings } = deps;
  const bound = await readPlaceOfRun(db, session.runId, null);
  const person = bound?.person ? ({ teamId: session.teamId, kind: 'user', uid: bound.person } as const) : null;
  if (person !== null && !bound?.isRestricted && !(await mayStartRuns(db, [person]))(person))
    return refused('The person who started this run on GitHub may no longer start runs.');
  const place = bound && (await readPlace(db, bound.placeId));
  const app = place && (await readApp(db, place.app_uid, session.teamId));
  const host = githubHostOf(settings);
  const asked = address === undefined || host === null ? null : pullRequestAt(address, host.web);
  if (host === null || (address !== undefined && asked === null))
    return refused('pull_request is not the page of a pull request of the GitHub of this service.');
  const isBound = place && (asked === null || (place.kind !== 'issue' && isSamePullRequest(place, asked)));
  if (isBound && app && !place.is_suspended) {
    const key = await readAppKey(db, vault, app, host);
    return key ? { place, app, key, host } : refused('The private key of the App cannot be read.');
  }
  if (asked === null)
    return refused('No issue or pull request started this run. Name a pull request that it opened in pull_request.');
  return await targetOfOpened(deps, session, { host, address: address ?? '', ...asked });
}

const isSamePullRequest = (place: PlaceRow, { owner, repo, number }: { owner: string; repo: string; number: number }) =>
  place.number === number && place.repository.toLowerCase() === `${owner}/${repo}`.toLowerCase();

/** Returns the pull request if the service opened it for this run, and an App of the team is installed there. */
async function targetOfOpened(
  { db, vault, api }: AnswerDeps,
  session: RunSession,
  of: { host: GithubHost; address: string; owner: string; repo: string; number: number },
): Promise<Target | NotWritten> {
  const { host, address, owner } = of;
  if (!(await hasOpened(db, session.runId, canonicalUrl(address) ?? '')))
    return refused('This run may write only where it was started, and to pull requests that it opened itself.');
  const name = new URL(host.web).host.toLowerCase();
  const installation = await findInstallationOfOwner(db, session.teamId, name, owner);
  const app = installation && (await readApp(db, installation.app_uid, session.teamId));
  const key = app && (await readAppKey(db, vault, app, host));
  const place = key && (await placeOfPullRequest(db, api, key, installation, of));
  return place ? { place, app, key, host } : refused(`No GitHub App of the team is installed for ${owner}/${of.repo}.`);
}

interface Wanted {
  readonly request: GithubAnswerRequest;
  readonly target: Target;
  readonly key: string;
}

/** Returns the same id for the same request of a run, so that a repeated request, also after a crash, writes nothing twice. */
const keyOf = ({ runId }: RunSession, request: GithubAnswerRequest): string =>
  hash('sha256', JSON.stringify([runId, request])).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*$/, '$1-$2-$3-$4-$5');

async function writeOnce(deps: AnswerDeps, session: RunSession, { request, target, key }: Wanted): Promise<Answered> {
  const { db, api } = deps;
  const { runId } = session;
  const { tool } = request;
  const { place, key: app } = target;
  const works = answerTools[tool] as AnswerTool<GithubAnswerRequest['input']>;
  // To find the place of a pull request, GitHub was asked. So this counts as an attempt, even if nothing can be sent.
  await recordAnswer(db, { key, placeId: place.id, runId, tool });
  if (works.needsPullRequest && place.kind === 'issue')
    return refused(`${tool} needs a pull request; this is an issue.`);
  const first = cleanRequest(deps, session, works, { request, place, marker: markerOf(key) });
  if (first === null) return refused('A text, path or label cannot be shown safely on GitHub. Write plain text.');
  const leased = await leaseComment(db, key);
  if (!leased) return { kind: 'busy', message: 'An earlier attempt of the same request may still be in progress.' };
  const written = (url: string, isNew: boolean): Answered => ({ kind: 'written', response: { url, is_new: isNew } });
  const scope = {
    installationId: place.installation_id,
    repositoryId: place.repository_id,
    permissions: works.permissions(place),
  };
  const ask = (each: GithubRequest) => api.asInstallation(app, scope, each);
  try {
    if (leased.url !== null) {
      await releaseComment(db, leased);
      return written(leased.url, false);
    }
    const full = leased.asked_at === null ? await limitReached(db, place.id) : null;
    if (full) {
      await releaseComment(db, leased);
      return conflict(`The daily limit of ${maxPerDay[full]} texts for this ${full} is reached. Try again tomorrow.`);
    }
    const bot = `${target.app.slug}[bot]`;
    const lost = leased.asked_at && works.list ? await findLost(ask, works.list(place), leased, bot) : null;
    if (lost && lost.kind !== 'found') {
      await releaseComment(db, leased);
      return sentenceOf(tool, lost);
    }
    if (!(await markCommentAsked(db, leased))) return { kind: 'busy', message: 'The attempt took too long.' };
    const answer = lost ?? (await carryOut(ask, works, { request, place, first }));
    if (typeof answer === 'string' || (answer.kind !== 'ok' && answer.kind !== 'found')) {
      // GitHub may have the text only if its answer was lost.
      if (typeof answer !== 'string' && answer.kind === 'unavailable') await releaseComment(db, leased);
      else await takeBackAnswer(db, leased);
      return typeof answer === 'string' ? { kind: 'not_found', message: answer } : sentenceOf(tool, answer);
    }
    const url = pageOf(answer.body, target);
    await db.transaction(async (tx) => {
      if (!(await settleComment(tx, leased, { requestId: null, url }))) return;
      const { executionId, teamId, executor: creator } = session;
      await appendTimelineEvent(tx, { runId, executionId, type: 'github_answered', payload: { tool, url } });
      // The limits of the tools bound these entries.
      await recordAction(
        tx,
        { teamId, creator, keyId: null, from: null },
        {
          action: `github.${tool}`,
          subject: { type: 'github_place', uid: url, name: `${place.repository}#${place.number}` },
          after: { run_id: runId },
        },
      );
    });
    return written(url, true);
  } catch (error) {
    await releaseComment(db, leased);
    throw error;
  }
}

/** Returns the first request with clean texts; null if one cannot be made clean. Its secrets are removed first, as in the run's comment. */
function cleanRequest(
  { executionDeps }: AnswerDeps,
  session: RunSession,
  works: AnswerTool<GithubAnswerRequest['input']>,
  { request, place, marker }: { request: GithubAnswerRequest; place: PlaceRow; marker: string },
): GithubRequest | null {
  try {
    return works.request(place, withoutSecrets(executionDeps, session, visibleValue(request.input)), marker);
  } catch {
    return null;
  }
}

/** Sends the request, and those that follow from its answer. A string says that GitHub has no such thing. */
async function carryOut(
  ask: (request: GithubRequest) => Promise<GithubAnswer>,
  { next }: AnswerTool<GithubAnswerRequest['input']>,
  { request, place, first }: { request: GithubAnswerRequest; place: PlaceRow; first: GithubRequest },
): Promise<GithubAnswer | string> {
  let answer = await ask(first);
  for (let round = 1; next && round < maxRequests && answer.kind === 'ok'; round += 1) {
    // GraphQL answers 200 also to what it refuses.
    const { errors } = Object(answer.body);
    if (Array.isArray(errors)) return { kind: 'refused', status: 403, message: String(Object(errors[0]).message) };
    const following = next(answer.body, place, request.input);
    if (following === null || typeof following === 'string') return following ?? answer;
    answer = await ask(following);
  }
  return answer;
}

function sentenceOf(tool: GithubToolName, answer: Exclude<GithubAnswer, { kind: 'ok' }>): NotWritten {
  if (answer.kind === 'limited') {
    const seconds = Math.ceil(answer.retryAfterMs / 1000);
    return {
      kind: 'unavailable',
      message: `GitHub accepts no requests for ${seconds} s. Call ${tool} again after that.`,
    };
  }
  if (answer.kind === 'unavailable')
    return {
      kind: 'unavailable',
      message: `${answer.message}. Call ${tool} again with the same input: nothing is written twice.`,
    };
  const { status, message } = answer;
  if (/permissions requested/.test(message) || status === 403)
    return refused(`The GitHub App lacks a permission for ${tool}: ${message}`);
  if (status === 404 || status === 410)
    return { kind: 'not_found', message: `GitHub no longer has this issue or pull request: ${message}` };
  const hint =
    tool === 'review'
      ? ' Comments must be about lines in the diff of the reviewed commit. Read the pull request again: it may have new commits.'
      : '';
  return conflict(`GitHub refuses ${tool} with ${status}: ${message}.${hint}`);
}

/** Returns the address of the written text on GitHub, only if it has the form of GitHub's own addresses. */
function pageOf(body: unknown, { place, host }: Target): string {
  const own: unknown = Object(body).html_url;
  if (typeof own === 'string' && own.startsWith(`${host.web}/`) && /^[\w:/.#-]{1,300}$/.test(own)) return own;
  return `${host.web}/${place.repository}/${place.kind === 'issue' ? 'issues' : 'pull'}/${place.number}`;
}
