import { randomInt } from 'node:crypto';
import { takeName } from '../../state/take-name.ts';

/**
 * First uid that is used for sandboxes. All uids for sandboxes are below 100,000, because Linux distributions assign the uids from
 * 100,000 on to other purposes (subordinate uids).
 */
const firstUid = 70_000;
const users = 30_000;

/** The user to whom the processes and files of one sandbox belong. No other running sandbox on the machine has this user. */
export interface Identity {
  /** Also the gid. */
  readonly uid: number;
  /** Releases the user. The kernel also releases it when this process dies. */
  release(): void;
}

/**
 * Takes a free user for a sandbox. The kernel releases the user when this process ends, because the sandbox ends at the same time. Can
 * be used only if this process is root, because only root can start processes under another user. The search begins at a random uid,
 * so that a released uid is rarely used again soon.
 */
export async function takeIdentity(): Promise<Identity> {
  const first = randomInt(users);
  for (let n = 0; n < users; n++) {
    const uid = firstUid + ((first + n) % users);
    const name = await takeName(`runyard-uid-${uid}`);
    if (name !== undefined) return { uid, release: () => void name.close() };
  }
  throw new Error(`all ${users} users for sandboxes are in use on this machine`);
}
