/**
 * Decides about an event of a GitHub App: whose it is, whether it continues a run, and which automations may start runs. The caller has
 * checked the signature, or has read the event from GitHub.
 */
import { hash, randomUUIDv7 } from 'node:crypto';
import { maxWebhookBytes } from '@runyard/contract/limits';
import type { Database } from '../../platform/store/database/database.ts';
import { defineStatement, integer, type RowOf } from '../../platform/store/database/statement.ts';
import { isUuid } from '../../platform/store/database/uuid.ts';
import { findPullRequestOfRun } from '../../runs/repositories/pull-requests/own.ts';
import { submitRun } from '../../runs/runs/submit/submit.ts';
import { enqueueNotice } from '../../runs/subscriptions/channels.ts';
import { mayStartRuns } from '../../team/access/may-start-runs.ts';
import { readGithubDelivery } from '../automations/github/read-delivery.ts';
import { findPullRequestOfStart } from '../history/pull-requests.ts';
import type { KnownWebhook, WebhookDirectory } from '../webhooks/ingest/directory.ts';
import { eventHeadersOf, identify } from '../webhooks/ingest/read-request.ts';
import type { EventSender } from '../webhooks/ingest/sender.ts';
import type { CheckedDelivery, Written } from '../webhooks/ingest/take-deliveries.ts';
import { readWebhookDelivery } from '../webhooks/log/deliveries.ts';
import type { AppRow } from './apps.ts';
import type { AskDeps } from './ask-place.ts';
import { showsRun } from './check-runs.ts';
import { completeEvent, laterNameOf } from './complete-event.ts';
import { takeFromBudgets } from './event-budgets.ts';
import { followPullRequest } from './follow-pull-request.ts';
import { findInstallation, type InstallationRow, noteSuspension } from './installations.ts';
import { findPerson } from './people.ts';
import { isFirstNotice, type RunOfPlace, readRunOfPlace, recordPlace } from './places.ts';
import { type AppEvent, atPullRequest, mentionsApp, readAppEvent } from './read-event.ts';
import { findCheckout } from './read-head.ts';
import { isCheckOf, readPullRequestEvents, readSubjects } from './read-pull-request.ts';
import { isPartOfReview } from './read-review.ts';
import { shrink } from './shrink.ts';
import { recordWord } from './words.ts';

/** Names of events that automations, runs or installations use. All others are dropped before their bodies are read. */
const usedEvents = new Set([
  'push',
  'issues',
  'issue_comment',
  'pull_request',
  'pull_request_review',
  'pull_request_review_comment',
  'check_suite',
  'check_run',
  'workflow_run',
  'installation',
]);
export const isUsedEvent = (name: string): boolean => usedEvents.has(name);

export interface ReceiveDeps extends AskDeps {
  readonly webhooks: WebhookDirectory;
  write(delivery: CheckedDelivery): Promise<Written | 'busy'>;
  /** Creates runs that repeat others. */
  readonly submit: Parameters<typeof submitRun>[0];
}

/** An event whose signature was right. */
export interface ReceivedEvent {
  readonly app: AppRow;
  /** The header X-GitHub-Event. */
  readonly name: string;
  /** The header X-GitHub-Delivery, the same for a redelivery. */
  readonly guid: string;
  readonly body: Buffer;
  readonly payload: unknown;
}

/** `ignored`: the event starts nothing, and is not stored. `away`: GitHub does not show the pull request of this event now. */
export type ReceiveOutcome =
  | { readonly kind: 'accepted' | 'duplicate'; readonly deliveryId: string }
  | { readonly kind: 'ignored'; readonly reason: string }
  | { readonly kind: 'rate_limited'; readonly retryAfterMs: number }
  | { readonly kind: 'busy' | 'away' };

const ignored = (reason: string): ReceiveOutcome => ({ kind: 'ignored', reason });

const countReaders = defineStatement({
  name: 'count_automations_of_github_event',
  text: `
    SELECT count(*) AS count, count(*) FILTER (WHERE jsonb_path_exists(a.triggers, '$[*].filter.associations')) AS of_outsiders
    FROM automations a WHERE a.team_id = $1 AND a.factory_uid = $2
      AND EXISTS (SELECT FROM jsonb_array_elements(a.triggers) t WHERE t->>'provider' = 'github' AND t->>'event' = ANY ($3::text[])
        OR t->>'provider' = 'webhook' AND (t->'filter'->'webhook_ids' ? $4 OR t->'filter'->'webhook_ids'->'in' ? $4))`,
  row: { count: integer, of_outsiders: integer },
});

/** Numbers of automations that read an event, and of those that also people outside the team may start. */
type Readers = RowOf<typeof countReaders>;

async function readersOf(
  db: Database,
  { team_id: teamId, factory_uid: factoryUid, webhook_uid: webhookUid }: InstallationRow,
  names: readonly string[],
): Promise<Readers> {
  const [found] = await db.query(countReaders, [teamId, factoryUid, names, webhookUid]);
  return found ?? { count: 0, of_outsiders: 0 };
}

/** Handles an event of an installation itself. */
async function receiveInstallation({ db }: ReceiveDeps, app: AppRow, event: AppEvent, payload: unknown) {
  const { installationId, action } = event;
  const login: unknown = Reflect.get(
    Object(Reflect.get(Object(Reflect.get(Object(payload), 'installation')), 'account')),
    'login',
  );
  if (installationId !== null && ['suspend', 'unsuspend', 'deleted', 'created'].includes(action))
    await noteSuspension(db, app.uid, installationId, {
      isSuspended: action === 'suspend' || action === 'deleted',
      login: typeof login === 'string' ? login.slice(0, 100) : null,
    });
  return ignored('an event of the installation');
}

type Trust = Pick<EventSender, 'trust' | 'person'>;

async function trustOf(db: Database, app: AppRow, event: AppEvent): Promise<Trust> {
  const person = await findPerson(db, app.uid, event.sender.id);
  const actor = { teamId: app.team_id, kind: 'user', uid: person ?? '' } as const;
  if (event.isByApp && !event.needsWriteAccess) return { trust: 'app' };
  if (person !== null && (await mayStartRuns(db, [actor]))(actor)) return { trust: 'member', person };
  return { trust: event.needsWriteAccess ? 'repository' : 'outsider', ...(person === null ? {} : { person }) };
}

/** Returns the run that the event continues: a member mentions the App in a place with a run that nobody outside the team caused. */
async function runToContinue(
  db: Database,
  app: AppRow,
  event: AppEvent,
  { trust, place_id: placeId }: EventSender,
): Promise<RunOfPlace | null> {
  const isWord = event.text?.kind === 'issue' || event.text?.kind === 'review';
  if (trust !== 'member' || placeId === undefined || !isWord || !mentionsApp(event, app.slug)) return null;
  const run = await readRunOfPlace(db, placeId);
  return run?.isRestricted ? null : run;
}

const isByApp = ({ slug }: AppRow, { sender }: AppEvent): boolean => sender.login === `${slug}[bot]`;

/** Takes an event: records it in the log of the installation's webhook, starts or continues runs, and tells a stranger how to link. */
export async function receiveEvent(deps: ReceiveDeps, received: ReceivedEvent): Promise<ReceiveOutcome> {
  const { db } = deps;
  const { app, name, payload } = received;
  const event = readAppEvent(name, payload);
  if (event === null) return ignored('the event has no sender');
  if (name === 'installation') return await receiveInstallation(deps, app, event, payload);
  if (name === 'check_run' && event.action === 'rerequested') {
    const repeated = await rerunOfCheck(deps, received, event);
    if (repeated !== null) return repeated;
  }
  // Actions of the App itself start nothing, but the service records the events of its pull requests. The sender of a check of another App is
  // the account that has pushed the commit, which is often the App itself.
  const isCheck = (name === 'check_suite' || name === 'workflow_run') && event.action === 'completed';
  const isOwn = isCheck ? isCheckOf(app, payload) : isByApp(app, event);
  const read = isOwn ? [] : readGithubDelivery(name, payload);
  const pulls = isOwn && name !== 'pull_request' ? [] : readPullRequestEvents(event, received.guid, payload);
  if (read.length === 0 && pulls.length === 0)
    return ignored(isOwn ? 'the App itself caused it' : 'no automation can name such an event');
  if (event.installationId === null || event.repository === null) return ignored('the event names no repository');
  const installation = await findInstallation(db, app.uid, event.installationId);
  if (!installation) return ignored('no team has claimed the installation');
  const names = read.map((each) => each.event);
  const later = laterNameOf(event, payload);
  const readers = await readersOf(db, installation, later === undefined ? names : [...names, later]);
  const mayBeRead = !isOwn && !isPartOfReview(event, payload) && (mentionsApp(event, app.slug) || readers.count > 0);
  if (!mayBeRead && pulls.length === 0) return ignored('no automation of the factory reads such an event');
  const retryAfterMs = isOwn ? 0 : takeFromBudgets(app, event);
  if (retryAfterMs > 0) return { kind: 'rate_limited', retryAfterMs };
  const trust = await trustOf(db, app, event);
  for (const pull of pulls)
    await followPullRequest(db, installation.team_id, pull, { name, payload, trust: trust.trust });
  if (!mayBeRead) return ignored('no automation reads it; the state of the pull request is recorded');
  return await takeEvent(deps, installation, received, { event, readers, trust, about: pulls[0]?.url });
}

/** Takes an event that an automation may read. */
async function takeEvent(
  deps: ReceiveDeps,
  installation: InstallationRow,
  given: ReceivedEvent,
  {
    event: named,
    readers,
    trust,
    about: followed,
  }: { readonly event: AppEvent; readonly readers: Readers; readonly trust: Trust; readonly about: string | undefined },
): Promise<ReceiveOutcome> {
  const { db } = deps;
  const { app } = given;
  const webhook = await deps.webhooks.find(installation.webhook_uid);
  if (!webhook) return ignored('the webhook of the installation is disabled');
  // If no automation can start, GitHub is not asked: strangers must not use up the requests that GitHub allows.
  const isAble = trust.trust !== 'app' && (trust.trust === 'outsider' ? readers.of_outsiders : readers.count) > 0;
  const whole = isAble ? await completeEvent(deps, installation, app, { event: named, payload: given.payload }) : null;
  if (whole === 'away') return { kind: 'away' };
  const { event, payload } = whole ?? { event: named, payload: given.payload };
  const received = whole ? { ...given, payload, body: Buffer.from(JSON.stringify(payload)) } : given;
  const isMention = mentionsApp(event, app.slug);
  if (laterNameOf(named, given.payload) !== undefined && !isMention) {
    const names = readGithubDelivery(given.name, payload).map((each) => each.event);
    if ((await readersOf(db, installation, names)).count === 0) return ignored('no automation reads this event');
  }
  const subjects = readSubjects(event, payload);
  const subject = await findPullRequestOfRun(db, installation.team_id, subjects);
  // Checks of a run's own pull request are answered there, and their runs work on its head.
  const about =
    subject?.head === undefined
      ? event
      : atPullRequest(event, payload, { number: subject.number, commit: subject.head });
  const placeId = about.place === null ? undefined : await recordPlace(db, installation.uid, about.place);
  const by: EventSender = {
    ...trust,
    ...event.sender,
    place_id: placeId,
    ...(isByApp(app, event) ? { is_own: true } : {}),
    about: followed ?? subjects[0]?.url,
    pull_request: subject && {
      url: (await findPullRequestOfStart(db, subject.runId)) ?? subject.url,
      head: subject.head,
    },
  };
  const continues = await runToContinue(db, app, event, by);
  if (continues) await continueRun(deps, event, by, continues);
  const found = isAble && continues === null ? await findCheckout(deps, about, placeId) : undefined;
  if (found?.kind === 'away') return found;
  const sender = found?.kind === 'found' ? { ...by, checkout: found.checkout } : by;
  const hidden = found?.kind === 'refused' ? found.reason : undefined;
  const startsNothing = continues ? `the comment continues the run ${continues.runId}` : hidden;
  const written = await write(deps, webhook, received, { sender, startsNothing });
  if (written.kind === 'accepted' && isMention && sender.trust === 'outsider')
    await noticeOnce(deps, installation, sender, written.deliveryId);
  return written;
}

/** Repeats the run whose check run a member wants again. Returns null if the check run is not one of this service. */
async function rerunOfCheck(
  { db, submit }: ReceiveDeps,
  { app, guid, payload }: ReceivedEvent,
  event: AppEvent,
): Promise<ReceiveOutcome | null> {
  const { id, external_id: runId, app: by } = Object(Object(payload).check_run);
  const { installationId, repository } = event;
  if (String(Object(by).id) !== app.app_id || typeof runId !== 'string' || !isUuid(runId)) return null;
  const installation = installationId === null ? null : await findInstallation(db, app.uid, installationId);
  if (!installation || repository === null || !Number.isSafeInteger(id)) return null;
  const of = { runId, checkRunId: id, installationUid: installation.uid, repositoryId: repository.id };
  if (!(await showsRun(db, of))) return null;
  const retryAfterMs = takeFromBudgets(app, event);
  if (retryAfterMs > 0) return { kind: 'rate_limited', retryAfterMs };
  const { trust, person } = await trustOf(db, app, event);
  if (trust !== 'member' || person === undefined) return ignored('only members of the team repeat runs');
  const { team_id: teamId } = installation;
  const submitted = await submitRun(submit, {
    actor: { teamId, creator: { kind: 'user', uid: person } },
    request: { rerunOf: runId, instead: {} },
    source: 'WEBHOOK',
    // A redelivery, and the log of GitHub, have the same id.
    once: { teamId, principal: 'github', key: `rerun ${guid}`, requestHash: hash('sha256', runId, 'buffer') },
  });
  return ignored(
    submitted.kind === 'submitted' ? 'the run of the check is repeated' : `not repeated: ${submitted.kind}`,
  );
}

async function continueRun({ db }: ReceiveDeps, { text: comment }: AppEvent, sender: EventSender, run: RunOfPlace) {
  if (comment === null || sender.place_id === undefined || sender.person === undefined) return;
  await db.transaction((tx) =>
    recordWord(tx, {
      placeId: sender.place_id ?? '',
      runId: run.runId,
      commentKind: comment.kind === 'review' ? 'review' : 'issue',
      commentId: comment.id,
      githubId: sender.id,
      userUid: sender.person ?? '',
      message: comment.body,
    }),
  );
}

/** If the webhook changes while the event is written, the check begins again. */
const maxRounds = 5;

async function write(
  deps: ReceiveDeps,
  first: KnownWebhook,
  { name, guid, body, payload }: ReceivedEvent,
  { sender, startsNothing }: { readonly sender: EventSender; readonly startsNothing: string | undefined },
): Promise<ReceiveOutcome> {
  const small = body.length <= maxWebhookBytes ? body : shrink(payload, maxWebhookBytes);
  // GitHub gives an event the same id at every attempt and in its log. The signature was checked already.
  const signed = { 'x-hub-signature-256': 'checked' };
  const headers = { 'x-github-event': name, 'x-github-delivery': guid, 'content-type': 'application/json' };
  let webhook: KnownWebhook | null = first;
  for (let round = 0; round < maxRounds && webhook; round += 1) {
    const id = randomUUIDv7();
    const written = await deps.write({
      webhook,
      id,
      body: small,
      payload,
      identity: identify(webhook, { ...headers, ...signed }, small, payload),
      event: name,
      headers: eventHeadersOf(webhook, headers),
      sender,
      ...(startsNothing === undefined ? {} : { startsNothing: true, reason: startsNothing }),
    });
    if (written === 'busy') return { kind: 'busy' };
    if (written.kind === 'full') return { kind: 'rate_limited', retryAfterMs: written.waitMs };
    if (written.kind !== 'changed') return { kind: written.kind, deliveryId: id };
    deps.webhooks.forget(webhook.uid);
    webhook = await deps.webhooks.find(webhook.uid);
  }
  return webhook ? { kind: 'busy' } : ignored('the webhook of the installation is disabled');
}

/** Tells a person whose mention started nothing how to link the account, once in each place. */
async function noticeOnce(
  { db }: ReceiveDeps,
  { webhook_uid: webhookUid, subscription_id: subscriptionId }: InstallationRow,
  { place_id: placeId, person }: EventSender,
  deliveryId: string,
) {
  if (placeId === undefined) return;
  const logged = await readWebhookDelivery(db, webhookUid, deliveryId);
  if (logged?.delivery.automations?.some(({ matched }) => matched)) return;
  const notice = person === undefined ? 'link' : 'role';
  await db.transaction(async (tx) => {
    if (await isFirstNotice(tx, placeId)) await enqueueNotice(tx, subscriptionId, { place_id: placeId, notice });
  });
}
