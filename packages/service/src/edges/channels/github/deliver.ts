/** Delivers the events of runs, and notices, as comments on GitHub. */
import { isTerminal } from '@runyard/contract/runs/run-states';
import type { RunItem } from '@runyard/contract/runs/runs';
import type { Logger } from 'pino';
import type { Vault } from '../../../platform/secrets/vault.ts';
import type { Database } from '../../../platform/store/database/database.ts';
import { readLastPlan } from '../../../runs/conversations/stored-events.ts';
import type { ExecutionDeps } from '../../../runs/executions/deps.ts';
import { noteNoCheckRun, readEndedChecks } from '../../../runs/executions/timeline/checks.ts';
import { readOpenedHead } from '../../../runs/repositories/pull-requests/own.ts';
import { readCheckout } from '../../../runs/runs/read/checkout.ts';
import { readRunItem } from '../../../runs/runs/read/read.ts';
import { deleteChannelSubscription } from '../../../runs/subscriptions/channels.ts';
import type { ClaimedDelivery } from '../../../runs/subscriptions/claim.ts';
import type { SendOutcome } from '../../../runs/subscriptions/send.ts';
import type { GithubApi, GithubHost } from '../../../team/code-hosts/github-api.ts';
import { withoutSecrets } from '../../../team/redaction/agent-text.ts';
import { readGrantedSecrets } from '../../../team/stored-secrets/run-secrets.ts';
import { type AppRow, readApp, readAppKey } from '../../../triggers/github/apps.ts';
import { recordComment } from '../../../triggers/github/comments.ts';
import { githubHostOf, type HostSettings } from '../../../triggers/github/hosts.ts';
import { findInstallationOf, type InstallationRow } from '../../../triggers/github/installations.ts';
import { pagePath } from '../../../triggers/github/manifest.ts';
import { type PlaceRow, readPlace, readPlaceOfRun } from '../../../triggers/github/places.ts';
import { annotationsOf } from './annotations.ts';
import { writeCheckRun } from './check-run.ts';
import { renderRun } from './render.ts';
import { sanitize, visibleValue } from './sanitize.ts';
import { type CommentText, type WriterDeps, writeComment } from './write-comment.ts';

export interface GithubChannelDeps extends WriterDeps {
  readonly db: Database;
  readonly log: Logger;
  readonly vault: Vault;
  readonly api: GithubApi;
  readonly settings: HostSettings;
  readonly executionDeps: Pick<ExecutionDeps, 'secrets' | 'vault'>;
  baseUrl(): string;
}

/** The delivery needs no comment, now and later. */
const nothingToDo: SendOutcome = { kind: 'answered', status: 204, retryAfter: undefined };
const later = (error: string): SendOutcome => ({ kind: 'failed', error });

/** The part of the data that a comment needs, besides its text. */
interface Target {
  readonly place: PlaceRow;
  readonly app: AppRow;
  readonly host: GithubHost;
}

/** The comment that replaces a text which cannot be made clean. */
const unclean = 'The text of this run cannot be shown here. Read it on the page of the run.';

function textOfRun(
  deps: GithubChannelDeps,
  { app, host, place }: Target,
  { run, plan }: { readonly run: RunItem; readonly plan: unknown },
): CommentText {
  const handle = `@${app.slug}`;
  const baseUrl = deps.baseUrl();
  try {
    return renderRun(run, { handle, web: host.web, baseUrl, isPrivate: place.is_private }, plan);
  } catch (error) {
    deps.log.warn({ err: error, run_id: run.run_id }, 'the text of a run is not shown on GitHub');
    return { text: `${unclean} ${baseUrl}/runs/${run.run_id}`, requestId: null };
  }
}

/** Returns the current state of the run, without secrets; null: the run was deleted. Throws if its secrets cannot be read. */
async function readCleanRun(deps: GithubChannelDeps, { place }: Target, runId: string): Promise<RunItem | null> {
  const run = await readRunItem(deps.db, { teamId: place.team_id, teamUid: '', baseUrl: deps.baseUrl() }, runId);
  return run && (await cleanOf(deps, runId, run));
}

/** Returns the current state of the run, and the text of its comment; null: the run was deleted. */
async function readShown(deps: GithubChannelDeps, target: Target, runId: string) {
  const run = await readCleanRun(deps, target, runId);
  if (run === null) return null;
  const plan = await cleanOf(deps, runId, await readLastPlan(deps.db, runId));
  return { run, text: textOfRun(deps, target, { run, plan }) };
}

/** Returns a value of the run without its secrets. */
async function cleanOf<T>({ db, executionDeps }: GithubChannelDeps, runId: string, value: T): Promise<T> {
  const grantedSecrets = await readGrantedSecrets(db, runId);
  return withoutSecrets(executionDeps, { grantedSecrets }, visibleValue(value));
}

function textOfNotice({ slug }: AppRow, { notice, text }: ClaimedDelivery['data'], baseUrl: string): string {
  switch (notice) {
    case 'link':
      return `To work for you, I need to know who you are: link your account at ${baseUrl}${pagePath}, and mention \`@${slug}\` again.`;
    case 'role':
      return 'Your role in the team does not let you start runs. An administrator can change it.';
    default:
      return sanitize(String(text ?? '').slice(0, 2_000));
  }
}

async function targetOf(
  { db, settings }: GithubChannelDeps,
  installation: InstallationRow,
  placeId: string,
): Promise<Target | null> {
  const place = await readPlace(db, placeId);
  const app = place && (await readApp(db, place.app_uid));
  const host = app && githubHostOf(settings, app.host);
  return place && host && place.installation_uid === installation.uid ? { place, app, host } : null;
}

async function write(
  deps: GithubChannelDeps,
  target: Target,
  key: string,
  read: () => Promise<CommentText | null>,
): Promise<SendOutcome> {
  const app = await readAppKey(deps.db, deps.vault, target.app, target.host);
  if (!app) return later('the private key of the App cannot be read: store it again');
  return await writeComment(deps, { app, bot: `${target.app.slug}[bot]`, place: target.place }, key, read);
}

/** Delivers one event. Throws for unexpected errors; the delivery is then tried again after its lease. */
export async function deliverToGithub(deps: GithubChannelDeps, delivery: ClaimedDelivery): Promise<SendOutcome> {
  const { db } = deps;
  const { data, subscription_id: subscriptionId } = delivery;
  const installation = await findInstallationOf(db, subscriptionId);
  if (!installation) {
    // The webhook or the factory of the installation was deleted.
    await db.transaction((tx) => deleteChannelSubscription(tx, subscriptionId));
    return nothingToDo;
  }
  if (installation.is_suspended) return nothingToDo;
  if (data.place_id !== undefined) {
    const target = await targetOf(deps, installation, String(data.place_id));
    if (!target) return nothingToDo;
    await recordComment(db, delivery.id, target.place.id, null);
    const text = textOfNotice(target.app, data, deps.baseUrl());
    return await write(deps, target, delivery.id, async () => ({ text, requestId: null }));
  }
  const runId = String(data.run_id);
  const of = await readPlaceOfRun(db, runId, installation.webhook_uid);
  const target = of && (await targetOf(deps, installation, of.placeId));
  if (!target) return nothingToDo;
  await recordComment(db, runId, of.placeId, { runId, senderId: of.senderId, isRestricted: of.isRestricted });
  const outcome = await write(deps, target, runId, async () => (await readShown(deps, target, runId))?.text ?? null);
  const shown = await showCheckRun(deps, target, runId);
  // A comment that could not be written is tried again, with the check run.
  return shown && outcome.kind === 'answered' && outcome.status < 300 ? shown : outcome;
}

/** Returns the head of the pull request that the run works on, or has opened; undefined: neither is in the repository of the place. */
async function headOf(db: Database, { place, host }: Target, runId: string): Promise<string | undefined> {
  const { repository } = place;
  const checkout = await readCheckout(db, runId);
  if (checkout === null) return await readOpenedHead(db, runId, { web: host.web, repository });
  return `${checkout.owner}/${checkout.repo}`.toLowerCase() === repository.toLowerCase() ? checkout.commit : undefined;
}

/** Shows the run on the head of its pull request. Returns null if there is none, or if GitHub does not accept a check run. */
async function showCheckRun(deps: GithubChannelDeps, target: Target, runId: string): Promise<SendOutcome | null> {
  const { db, log, vault } = deps;
  const { place, host } = target;
  const commit = await headOf(db, target, runId);
  if (commit === undefined) return null;
  const app = await readAppKey(db, vault, target.app, host);
  if (!app) return null;
  const page = `${deps.baseUrl()}/runs/${runId}`;
  const shown = await writeCheckRun(deps, { app, place, commit, page, runId }, async () => {
    const found = await readShown(deps, target, runId);
    if (found === null) return null;
    const { run, text } = found;
    // Outputs may name things of the team, like the reason of a failure.
    const ended = place.is_private && isTerminal(run.state) ? await readEndedChecks(db, runId) : [];
    return { run, text: text.text, annotations: annotationsOf(await cleanOf(deps, runId, ended)) };
  });
  if (shown.kind !== 'refused') return shown;
  log.warn({ run_id: runId, reason: shown.reason }, 'GitHub accepts no check run');
  await noteNoCheckRun(db, runId, shown.reason);
  return null;
}
