import type { OpenPullRequest, OpenPullRequestResponse } from '@runyard/contract/agent/pull-requests';
import type { Repository } from '@runyard/contract/environments/repositories';
import { maxPullRequestsOfRun } from '@runyard/contract/limits';
import { type Refusal, refuse, tooBusy } from '../../../platform/serving/refusal.ts';
import type { Database, Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, integer } from '../../../platform/store/database/statement.ts';
import { whileLeased } from '../../../platform/uploads/lease.ts';
import { recordChange } from '../../../team/access/audit/record.ts';
import type { CodeHosts } from '../../../team/code-hosts/code-hosts.ts';
import { readDefaultBranch } from '../../../team/code-hosts/default-branch.ts';
import { type ServiceSecrets, withoutSecrets } from '../../../team/redaction/agent-text.ts';
import { whyRepositoriesStay } from '../../executions/plan-mode.ts';
import { AttemptOver } from '../../executions/run-tokens/attempt.ts';
import { readCodeHostUser } from '../../executions/run-tokens/present-rights.ts';
import type { RunSession } from '../../executions/run-tokens/sessions.ts';
import { reportArtifact } from '../../files/artifacts/report.ts';
import { readRepositories } from '../../runs/read/repositories.ts';
import { enqueueProgress } from '../../subscriptions/channels.ts';
import { gitHubHeaders, openAtGitHub } from './github.ts';
import { openAtGitLab } from './gitlab.ts';
import { type AtHost, askApiWith, type Wanted } from './host.ts';

/** `refused` 403, `not_found` 404, `conflict` 409, `busy` 429, `unavailable` 503; each `message` is a whole sentence. */
export type OpenedPullRequest =
  | { readonly kind: 'open'; readonly response: OpenPullRequestResponse }
  | { readonly kind: 'busy'; readonly message: string }
  | Exclude<AtHost, { kind: 'open' }>;

interface Deps extends ServiceSecrets {
  readonly db: Database;
  readonly codeHosts: Pick<CodeHosts, 'apiOf' | 'credentialFor' | 'urlOf'>;
}

const count = defineStatement({
  name: 'count_pull_requests_of_run',
  text: "SELECT count(*) AS pull_requests FROM artifacts WHERE run_id = $1 AND artifact_type = 'PULL_REQUEST'",
  row: { pull_requests: integer },
});

/**
 * Opens a pull request for a branch at the code host, with the credential that the run has for the repository, and stores it as an
 * artifact of the run. If the service is killed before it stores the artifact, the next request finds the open pull request. Throws
 * `AttemptOver`.
 */
export async function openPullRequest(
  deps: Deps,
  session: RunSession,
  request: OpenPullRequest,
  signal: AbortSignal,
): Promise<OpenedPullRequest> {
  const reason = await whyRepositoriesStay(deps.db, session.executionId);
  if (reason !== undefined) return { kind: 'refused', message: `No pull request was opened: ${reason}.` };
  // Requests of the same run are handled one after another, so that concurrent requests cannot exceed the limit of the run.
  const lease = { name: `pull-request/${session.runId}`, most: 1 };
  const opened = await whileLeased(deps.db, lease, () => openNext(deps, session, request, signal));
  if (opened !== 'busy') return opened;
  return { kind: 'busy', message: 'The run is opening another pull request at the moment. Try again.' };
}

async function openNext(
  deps: Deps,
  session: RunSession,
  request: OpenPullRequest,
  signal: AbortSignal,
): Promise<OpenedPullRequest> {
  const { db } = deps;
  const { owner, repo } = request.repository;
  const repositories = await readRepositories(db, session.executionId);
  if (!repositories.some((each) => each.owner === owner && each.repo === repo))
    return { kind: 'not_found', message: `${owner}/${repo} is not a repository of this run's environment.` };
  const opened = (await db.query(count, [session.runId]))[0]?.pull_requests ?? 0;
  if (opened >= maxPullRequestsOfRun)
    return { kind: 'conflict', message: `The run has ${opened} pull requests, as many as a run can open.` };
  const atHost = await askHost(deps, session, request, signal);
  if (atHost.kind !== 'open') return atHost;
  const { url, isNew } = atHost;
  const record = async (tx: Queryable) => {
    if (!isNew) return;
    const author = { teamId: session.teamId, creator: session.executor, keyId: null, from: null };
    const subject = { type: 'pull_request', uid: url, name: `${owner}/${repo}` };
    const after = withoutSecrets(deps, session, { run_id: session.runId, branch: request.head });
    await recordChange(tx, author, { action: 'pull_request.create', subject, after });
  };
  const stored = db.transaction(async (tx): Promise<OpenedPullRequest> => {
    const data = { url, branch: request.head };
    const reported = await reportArtifact(deps, tx, session, {
      artifact_type: 'PULL_REQUEST',
      data,
      isOpened: isNew,
    });
    if (reported.kind === 'invalid') {
      const why = reported.faults.map(({ message }) => message).join('; ');
      await record(tx);
      return {
        kind: 'conflict',
        message: `The pull request ${url} is open, and cannot be stored as an artifact: ${why}.`,
      };
    }
    await record(tx);
    // A channel can now show the run at the head of the pull request.
    await enqueueProgress(tx, session.runId);
    const response = { artifact_uid: reported.artifactUid, url, branch: request.head, is_new: isNew };
    return { kind: 'open', response };
  });
  return await stored.catch(async (error: unknown) => {
    // The run was cancelled meanwhile, so the artifact cannot be stored. Record the pull request anyway, because it exists at the code
    // host.
    if (error instanceof AttemptOver) await db.transaction(record);
    throw error;
  });
}

async function askHost(
  deps: Deps,
  session: RunSession,
  { repository, head, base: named, ...request }: OpenPullRequest,
  signal: AbortSignal,
): Promise<AtHost> {
  const { codeHosts } = deps;
  const chosen = await codeHosts.credentialFor(await readCodeHostUser(deps.db, session), repository);
  if (chosen.kind === 'unusable') return { kind: 'refused', message: chosen.message };
  if (chosen.kind === 'unavailable') return { kind: 'unavailable', message: chosen.message };
  if (chosen.kind === 'none') return { kind: 'refused', message: chosen.withheld ?? withoutCredential(repository) };
  const question = { repository, clone: codeHosts.urlOf(repository), chosen, signal };
  const target = named === undefined ? await readDefaultBranch(question) : { kind: 'branch' as const, name: named };
  if (target.kind !== 'branch') return target;
  if (target.name === null)
    return {
      kind: 'conflict',
      message: `${repository.owner}/${repository.repo} is empty: there is no branch to merge into.`,
    };
  const { title, body, draft } = withoutSecrets(deps, session, request);
  const wanted: Wanted = {
    ...repository,
    head,
    base: target.name,
    isBaseNamed: named !== undefined,
    title,
    body: body ?? '',
    draft: draft ?? false,
  };
  const api = codeHosts.apiOf(repository);
  const isGitHub = api.kind === 'github';
  const ask = askApiWith(api.url, chosen.credential.password, isGitHub ? gitHubHeaders : {}, signal);
  return await (isGitHub ? openAtGitHub(ask, wanted) : openAtGitLab(ask, wanted));
}

const withoutCredential = ({ owner, repo }: Repository): string =>
  `No credential is stored for ${owner}/${repo}, and pull requests need one: store it with bin/runyard code-hosts add.`;

/** Returns the answer to a run whose request was not carried out at the code host. */
export function refusalOfHost({ kind, message }: Exclude<OpenedPullRequest, { kind: 'open' }>): Refusal {
  switch (kind) {
    case 'refused':
      return refuse('not_authorized', { detail: message });
    case 'not_found':
      return refuse('resource_not_found', { detail: message });
    case 'conflict':
      return refuse('conflict', { detail: message });
    case 'busy':
      return tooBusy(message);
    case 'unavailable':
      return refuse('resource_unavailable', { status: 503, detail: message });
  }
}
