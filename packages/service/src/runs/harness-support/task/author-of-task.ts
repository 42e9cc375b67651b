import type { TaskAuthor } from '@runyard/contract/agent/agent-protocol';
import type { Queryable } from '../../../platform/store/database/database.ts';
import type { RunActor } from '../../../team/access/actor.ts';
import { readProfiles } from '../../../team/access/profiles.ts';

/**
 * Reads the author of a run's commits: its executor, with an address that reaches nobody where the service knows none. `baseUrl`: origin of
 * the service.
 */
export async function readAuthor(
  db: Queryable,
  teamId: string,
  executor: RunActor,
  baseUrl: string,
): Promise<TaskAuthor> {
  const { display_name: name = executor.uid, email } = (await readProfiles(db, teamId, [executor]))(executor);
  return { name, email: email ?? `${executor.uid}@noreply.${new URL(baseUrl).hostname}` };
}
