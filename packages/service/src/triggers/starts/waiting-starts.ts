/** Finds the schedules and automations whose runs lack rights until their executor accepts texts, and who waits after a change. */
import { maxWaitingContents, maxWaitingStarts } from '@runyard/contract/limits';
import type { ContentKind, WaitingAfterChange, WaitingStart } from '@runyard/contract/runs/acceptances';
import type { RunAgentRequest } from '@runyard/contract/runs/run-request';
import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement } from '../../platform/store/database/statement.ts';
import type { RunSubmission } from '../../runs/runs/submit/prepare.ts';
import { contentsOfConfig } from '../../runs/runs/submit/request-contents.ts';
import { decideRightsBehindGateway } from '../../runs/runs/submit/request-rights.ts';
import { readWhoWaits } from '../../team/acceptances/waiting.ts';
import type { RunActor } from '../../team/access/actor.ts';
import { type RunContent, readContents } from '../../team/access/contents/content.ts';
import { toContentItem, type Withheld } from '../../team/access/contents/run-rights.ts';
import type { FindWaiting } from '../../team/access/contents/waiting-after-change.ts';
import { resolveRunAs } from '../../team/access/identities/run-as.ts';
import { readProfiles } from '../../team/access/profiles.ts';
import { findNamedEnvironment } from '../../team/environments/named.ts';
import { secretsOfServers } from '../../team/mcp/secret-references.ts';
import { findWithheld } from '../../team/stored-secrets/find-usable.ts';
import { type AutomationRow, automationColumns, automationRow } from '../automations/automation-row.ts';
import { type ScheduleRow, scheduleColumns, scheduleRow } from '../schedules/schedule-row.ts';
import { readOwners } from './decide/owner.ts';

const readSchedules = defineStatement({
  name: 'read_schedules_that_may_wait',
  text: `
    SELECT ${scheduleColumns} FROM schedules s
    WHERE s.team_id = $1 AND s.automation_uid IS NULL AND s.enabled AND ($2::text IS NULL
      OR s.id::text = $2 OR s.agent_uid = $2 OR position($2 IN s.agent_config::text) > 0)
    ORDER BY s.name COLLATE "C", s.id`,
  row: scheduleRow,
});

/** Automations name contents in their own configuration, in that of their agent, or in the defaults of their factory. */
const readAutomations = defineStatement({
  name: 'read_automations_that_may_wait',
  text: `
    SELECT ${automationColumns} FROM automations a JOIN factories f ON f.uid = a.factory_uid
    WHERE a.team_id = $1 AND a.enabled AND ($2::text IS NULL OR a.uid = $2 OR a.factory_uid = $2
      OR position($2 IN concat(a.config, f.agent_defaults)) > 0
      OR EXISTS (SELECT FROM factory_agents g WHERE g.factory_uid = f.uid AND position($2 IN g.config::text) > 0))
    ORDER BY a.name COLLATE "C", a.uid`,
  row: automationRow,
});

interface Start {
  readonly kind: WaitingStart['kind'];
  readonly uid: string;
  readonly name: string;
  readonly executor: RunActor;
  readonly contents: readonly RunContent[];
  readonly withheld: readonly Withheld[];
}

/**
 * Returns the rights that the run of a submission would lack because other people wrote some of its texts; null if the run could not be
 * created for another reason.
 */
async function lostBy(
  db: Queryable,
  { actor, request, contents: madeFrom = [] }: RunSubmission & { readonly request: RunAgentRequest },
): Promise<Omit<Start, 'kind' | 'uid' | 'name'> | null> {
  const runAs = await resolveRunAs(db, actor, request);
  if (runAs.kind !== 'ok') return null;
  const { executor, config } = runAs;
  const { teamId } = actor;
  const uid = config.environment_id;
  const environment = uid === undefined ? null : await findNamedEnvironment(db, { teamId, creator: executor }, uid);
  const isOwn = environment?.kind === 'own' && !environment.isGuest;
  const all = await readContents(db, executor, [
    ...madeFrom,
    ...runAs.contents,
    ...(uid !== undefined && environment?.kind === 'own'
      ? [{ kind: 'environment' as const, uid, revision: environment.revision }]
      : []),
    ...(await contentsOfConfig(db, teamId, config, madeFrom)),
  ]);
  const names = {
    ofRun: config.secrets ?? [],
    ofEnvironment: isOwn ? (environment.config.secrets ?? []) : [],
    ofServers: secretsOfServers(config.mcp_servers ?? {}),
  };
  const behindGateway = await decideRightsBehindGateway(db, { teamId, executor, contents: all });
  const withheld = [
    ...(await findWithheld(db, { teamId, actor: executor, contents: all }, names)),
    ...behindGateway.withheld,
  ];
  return { executor, contents: all.filter(({ accepted }) => !accepted), withheld };
}

/** Any time is right, because rights do not depend on it. */
const someTime = { kind: 'time', schedule: { id: '', name: '', cronSchedule: '' }, isOwn: true } as const;

/**
 * Returns the enabled schedules and automations of the team whose runs lack rights because of texts that their executor has not accepted.
 * `named`: only those that execute this content. `isVisible`: leaves out the other schedules.
 */
export async function findWaitingStarts(
  db: Queryable,
  teamId: string,
  isVisible: (schedule: ScheduleRow) => boolean,
  named?: { readonly kind: ContentKind; readonly uid: string },
): Promise<Start[]> {
  // Configurations name a pool of workers by its name.
  const wanted = named?.kind === 'worker_pool' ? named.uid.slice(0, named.uid.indexOf('@')) : (named?.uid ?? null);
  const schedules = (await db.query(readSchedules, [teamId, wanted])).filter(isVisible);
  const automations: readonly AutomationRow[] = await db.query(readAutomations, [teamId, wanted]);
  const owners = await readOwners(db, schedules, automations);
  const starts: Start[] = [];
  const rows = [
    ...schedules.map(({ id, name }) => ({ kind: 'schedule' as const, uid: id, name })),
    ...automations.map(({ uid, name }) => ({ kind: 'automation' as const, uid, name })),
  ];
  for (const row of rows) {
    const submission = owners.get(row.uid)?.submissionFor(someTime);
    const lost = submission && typeof submission !== 'string' ? await lostBy(db, submission) : null;
    if (!lost || lost.withheld.length === 0) continue;
    const isNamed = ({ kind, uid }: RunContent) => kind === named?.kind && uid === named.uid;
    if (!named || lost.contents.some(isNamed)) starts.push({ ...row, ...lost });
    if (named && starts.length === maxWaitingStarts) break;
  }
  return starts;
}

/** Converts starts to the form in the API. */
export async function toWaitingStarts(
  db: Queryable,
  teamId: string,
  starts: readonly Start[],
): Promise<WaitingStart[]> {
  const authors = starts.flatMap(({ contents }) => contents.flatMap(({ author }) => author ?? []));
  const profileOf = await readProfiles(db, teamId, [...starts.map(({ executor }) => executor), ...authors]);
  return starts.map(({ executor, contents, withheld, ...start }) => ({
    ...start,
    executor: profileOf(executor),
    contents: contents.slice(0, maxWaitingContents).map((content) => ({
      ...toContentItem(content),
      ...(content.author ? { author: profileOf(content.author) } : {}),
    })),
    withheld: withheld.map(({ right, name }) => ({ right, ...(name === undefined ? {} : { name }) })),
  }));
}

/** Returns who waits for an acceptance after the caller changed a content; undefined if nobody waits. */
export const findWaitingAfterChange: FindWaiting = async (db, { teamId, creator }, kind, uid) => {
  const row = await readWhoWaits(db, teamId, creator, { kind, uid });
  if (!row) return undefined;
  const starts = await findWaitingStarts(db, teamId, ({ user_uid }) => user_uid === null || user_uid === creator.uid, {
    kind,
    uid,
  });
  if (row.kept.length === 0 && row.people.length === 0 && starts.length === 0) return undefined;
  const people = row.people.map((person) => ({ kind: 'user' as const, uid: person }));
  const profileOf = await readProfiles(db, teamId, [...row.kept, ...people]);
  const waiting: WaitingAfterChange = {
    kind,
    uid,
    revision: row.revision,
    kept_authors: row.kept.map(profileOf),
    starts: await toWaitingStarts(db, teamId, starts),
    people: people.map(profileOf),
  };
  return waiting;
};
