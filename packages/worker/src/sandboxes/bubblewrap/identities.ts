import type { Server } from 'node:net';
import { takeName } from '../../state/take-name.ts';

const firstUid = 70_000;
/** Uids of one worker: twice its largest number of slots, so that one is free while all slots are in use. */
const blockSize = 2000;
/** Blocks below 100,000, where distributions start to assign subordinate uids to users. */
const blocks = 15;

/** Users for sandboxes. Each live sandbox has its own uid for its files and limits. */
export interface Identities {
  /** Takes a uid (and gid) that is not in use, the least recently used first. */
  take(): number;
  give(uid: number): void;
  close(): void;
}

/** Takes a block of uids that no other worker of this machine uses. Only root can start processes under them. */
export async function claimIdentities(): Promise<Identities> {
  for (let block = 0; block < blocks; block++) {
    const first = firstUid + block * blockSize;
    const lock = await takeName(`runyard-uids-${first}`);
    if (lock !== undefined) return identitiesFrom(first, lock);
  }
  throw new Error(`all ${blocks} blocks of sandbox users are taken by other workers of this machine`);
}

function identitiesFrom(first: number, lock: Server): Identities {
  const taken = new Set<number>();
  let next = 0;
  return {
    take() {
      for (let tries = 0; tries < blockSize; tries++) {
        const uid = first + next;
        next = (next + 1) % blockSize;
        if (taken.has(uid)) continue;
        taken.add(uid);
        return uid;
      }
      throw new Error(`all ${blockSize} sandbox users are in use`);
    },
    give: (uid) => void taken.delete(uid),
    close: () => void lock.close(),
  };
}
