import { randomInt } from 'node:crypto';
import { takeName } from '../../state/take-name.ts';

/** The uids begin here and end below 100,000, because distributions assign subordinate uids from 100,000 on. */
const firstUid = 70_000;
const users = 30_000;

/** The user of one sandbox, for its files and limits. No other live sandbox of the machine has this user. */
export interface Identity {
  /** Also the gid. */
  readonly uid: number;
  /** Releases the user. The kernel also releases it when this process dies. */
  release(): void;
}

/**
 * Takes a user for a sandbox. The user is released when this process dies, because the sandbox ends at the same time. Only root can start
 * processes under another user. Begins at a random place of the range, so that a released user id is rarely used again soon.
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
