/** Bounds the uploads that a sandbox has going on at once, on all service processes together. */
import { randomUUID } from 'node:crypto';
import type { Database, Statement } from '../store/database/database.ts';

/** Renewed well before; after it the upload of a process that died is no longer in the way. */
const leaseSeconds = 30;
const renewEveryMs = 10_000;

const take: Statement = {
  name: 'take_upload_lease',
  text: `
    INSERT INTO upload_leases AS held (name, holder, expires_at)
    VALUES ($1, $2, clock_timestamp() + interval '${leaseSeconds} seconds')
    ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at
    WHERE held.expires_at < clock_timestamp() RETURNING name`,
};

const renew: Statement = {
  name: 'renew_upload_lease',
  text: `
    UPDATE upload_leases SET expires_at = clock_timestamp() + interval '${leaseSeconds} seconds'
    WHERE name = $1 AND holder = $2 RETURNING name`,
};

const giveBack: Statement = {
  name: 'give_back_upload_lease',
  text: 'DELETE FROM upload_leases WHERE name = $1 AND holder = $2',
};

/** The uploads that share a bound: of an execution's workspace, of a run's artifacts. */
export interface UploadKind {
  readonly name: string;
  /** How many may go on at once. */
  readonly most: number;
}

/**
 * Runs `work`, which reads `body`, unless as many uploads of the kind go on already: `busy`. An upload whose lease passed to another one,
 * because the database was away for too long, ends with an error at its next piece.
 */
export async function oneUpload<T>(
  db: Database,
  kind: UploadKind,
  body: AsyncIterable<Uint8Array>,
  work: (body: AsyncIterable<Uint8Array>) => Promise<T>,
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
  async function* whileHeld(): AsyncGenerator<Uint8Array> {
    for await (const piece of body) {
      if (isLost) throw new Error('the upload lost its lease to another one');
      yield piece;
    }
  }
  try {
    return await work(whileHeld());
  } finally {
    clearInterval(timer);
    // What cannot be given back passes by itself.
    await db.query(giveBack, [name, holder]).catch(() => undefined);
  }
}

async function takeOne(db: Database, kind: UploadKind, holder: string): Promise<string | undefined> {
  for (let place = 0; place < kind.most; place += 1) {
    const name = `${kind.name}/${place}`;
    if ((await db.query(take, [name, holder])).length > 0) return name;
  }
  return undefined;
}
