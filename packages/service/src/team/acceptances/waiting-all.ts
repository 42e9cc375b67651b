/** Lists everything that waits for the acceptance of a person. */
import { maxWaitingContents } from '@runyard/contract/limits';
import type { WaitingContent } from '@runyard/contract/runs/acceptances';
import type { Queryable } from '../../platform/store/database/database.ts';
import type { Author } from '../access/audit/record.ts';
import type { Principal } from '../access/keys/principal.ts';
import type { AcceptOutcome } from './accept.ts';
import { hasPersonalRights, listWaiting } from './waiting.ts';

/** Functions of the folder `runs` for conversations. This folder may not import `runs`. */
export interface AcceptableConversations {
  list(
    db: Queryable,
    caller: Pick<Principal, 'teamId' | 'creator'>,
    wanted: { readonly uid?: string | undefined; readonly hasPersonal: boolean },
  ): Promise<WaitingContent[]>;
  accept(
    tx: Queryable,
    by: Author,
    conversation: { readonly uid: string; readonly revision: number },
  ): Promise<AcceptOutcome>;
}

/** Returns the contents that wait for a person, with conversations, latest change first. `isBrief`: without the differences. */
export async function listAllWaiting(
  db: Queryable,
  conversations: Pick<AcceptableConversations, 'list'>,
  caller: Pick<Principal, 'teamId' | 'creator'>,
  { isBrief }: { readonly isBrief: boolean },
): Promise<WaitingContent[]> {
  const hasPersonal = await hasPersonalRights(db, caller.teamId, caller.creator.uid);
  const all = [
    ...(await listWaiting(db, caller, { isBrief })),
    ...(await conversations.list(db, caller, { hasPersonal })),
  ];
  return all.sort((a, b) => (a.written_at < b.written_at ? 1 : -1)).slice(0, maxWaitingContents);
}
