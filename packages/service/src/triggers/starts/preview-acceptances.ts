import type { ExecutorPreview } from '@runyard/contract/runs/acceptances';
import type { Queryable } from '../../platform/store/database/database.ts';
import { listWaiting } from '../../team/acceptances/waiting.ts';
import type { RunActor } from '../../team/access/actor.ts';
import { readMembersWhoStart } from '../../team/access/may-start-runs.ts';
import { readProfiles } from '../../team/access/profiles.ts';
import { findWaitingStarts, toWaitingStarts } from './waiting-starts.ts';

const keyOf = ({ kind, uid }: RunActor): string => `${kind} ${uid}`;

/**
 * Returns what the runs of each executor of the team lack until texts are accepted. Executors who lack nothing are left out. `only`: the
 * result is only about this person.
 */
export async function previewAcceptances(db: Queryable, teamId: string, only?: RunActor): Promise<ExecutorPreview[]> {
  const isWanted = (actor: RunActor) => only === undefined || keyOf(actor) === keyOf(only);
  const people = (await readMembersWhoStart(db, teamId)).filter(isWanted);
  const starts = (
    await findWaitingStarts(
      db,
      teamId,
      ({ user_uid }) => only === undefined || user_uid === null || user_uid === only.uid,
    )
  ).filter(({ executor }) => isWanted(executor));
  const executors = new Map([...people, ...starts.map(({ executor }) => executor)].map((each) => [keyOf(each), each]));
  const profileOf = await readProfiles(db, teamId, [...executors.values()]);
  const found: ExecutorPreview[] = [];
  for (const executor of executors.values()) {
    const waiting =
      executor.kind === 'user' ? await listWaiting(db, { teamId, creator: executor }, { isBrief: true }) : [];
    const own = starts.filter((start) => keyOf(start.executor) === keyOf(executor));
    if (waiting.length === 0 && own.length === 0) continue;
    found.push({ executor: profileOf(executor), waiting, starts: await toWaitingStarts(db, teamId, own) });
  }
  return found;
}
