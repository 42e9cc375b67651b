/** Limits how many uploads and other slow operations of a sandbox run at the same time, over all service processes. */
import { randomUUID } from 'node:crypto';
import type { Database } from '../store/database/database.ts';
import { defineStatement, text } from '../store/database/statement.ts';

/** If a process dies, its leases are free again after this time. */
const leaseSeconds = 30;
const renewEveryMs = 10_000;

const take = defineStatement({
  name: 'take_upload_lease',
  text: `
    INSERT INTO upload_leases AS held (name, holder, expires_at)
    VALUES ($1, $2, clock_timestamp() + interval '${leaseSeconds} seconds')
    ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at
    WHERE held.expires_at < clock_timestamp() RETURNING name`,
  row: { name: text() },
});

const renew = defineStatement({
  name: 'renew_upload_lease',
  text: `
    UPDATE upload_leases SET expires_at = clock_timestamp() + interval '${leaseSeconds} seconds'
    WHERE name = $1 AND holder = $2 RETURNING name`,
  row: { name: text() },
});

const giveBack = defineStatement({
  name: 'give_back_upload_lease',
  text: 'DELETE FROM upload_leases WHERE name = $1 AND holder = $2',
  row: {},
});

/** A kind of work with its limit, such as the workspace uploads of one execution or the pull requests of one run. */
export interface LeasedWork {
  readonly name: string;
  /** How many operations of this kind may run at the same time. */
  readonly most: number;
}

/**
 * Runs `work`, which reads `body`, while it holds a lease. `busy`: all leases of this kind are taken. If the database was unreachable
 * for so long that another upload may have got the lease, reading the body fails at its next piece.
 */
export async function oneUpload<T>(
  db: Database,
  kind: LeasedWork,
  body: AsyncIterable<Uint8Array>,
  work: (body: AsyncIterable<Uint8Array>) => Promise<T>,
): Promise<T | 'busy'> {
  return await whileLeased(db, kind, (isLost) => {
    async function* whileHeld(): AsyncGenerator<Uint8Array> {
      for await (const piece of body) {
        if (isLost()) throw new Error('the upload lost its lease to another one');
        yield piece;
      }
    }
    return work(whileHeld());
  });
}

/**
 * Runs `work` while it holds a lease. Returns `busy` if all leases of this kind are taken. `isLost` returns true if the database was
 * unreachable for so long that another process may have got the lease.
 */
export async function whileLeased<T>(
  db: Database,
  kind: LeasedWork,
  work: (isLost: () => boolean) => Promise<T>,
): Promise<T | 'busy'> {
  const holder = randomUUID();
  const name = await takeOne(db, kind, holder);
  if (name === undefined) return 'busy';
  let isLost = false;
  let leftUntil = performance.now() + leaseSeconds * 1000;
  const timer = setInterval(async () => {
    const askedAt = performance.now();
    const renewed = await db.query(renew, [name, holder]).catch(() => undefined);
    if (renewed === undefined) isLost ||= performance.now() > leftUntil;
    else if (renewed.length === 0) isLost = true;
    else leftUntil = askedAt + leaseSeconds * 1000;
  }, renewEveryMs);
  try {
    return await work(() => isLost);
  } finally {
    clearInterval(timer);
    // Ignore a failure here, because the lease expires by itself.
    await db.query(giveBack, [name, holder]).catch(() => undefined);
  }
}

async function takeOne(db: Database, kind: LeasedWork, holder: string): Promise<string | undefined> {
  for (let place = 0; place < kind.most; place += 1) {
    const name = `${kind.name}/${place}`;
    if ((await db.query(take, [name, holder])).length > 0) return name;
  }
  return undefined;
}
