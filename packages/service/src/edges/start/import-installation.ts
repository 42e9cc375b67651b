import { describeKeyProblem, type KeyPlace } from '../../platform/secrets/key-problem.ts';
import type { SealedRows } from '../../platform/secrets/seal-again.ts';
import { readVault, secretsKeyFile } from '../../platform/secrets/vault.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import { type DataPlace, withStore } from '../../platform/store/transfer/data-folder.ts';
import type { TransferResult } from '../../platform/store/transfer/export.ts';
import { importDatabase } from '../../platform/store/transfer/import.ts';
import { runBlobs } from '../../runs/runs/delete.ts';
import { sealedSubscriptions } from '../../runs/subscriptions/secret.ts';
import { sealedCredentials } from '../../team/code-hosts/records.ts';
import { sealedServers } from '../../team/mcp/sealed-values.ts';
import { sealedRunSecrets, sealedSecrets } from '../../team/stored-secrets/sealed-rows.ts';
import { sealedWebhooks } from '../../triggers/webhooks/ingest/secrets.ts';
import { reportMissingBlobs } from '../retention/blobs.ts';

export interface ImportResult extends TransferResult {
  /** Why the key of this installation does not decrypt the imported secrets, and which file to copy; null if it decrypts them. */
  readonly keyProblem: string | null;
  /** Number of rows whose blob is missing in the file, because it was missing when the file was written. */
  readonly missingBlobs: number;
}

/**
 * Fills an empty database and blob folder from the file `from`, and checks that the key decrypts the secrets in it and that no blob is
 * missing. The service must not run. Rejects with a message for a person.
 */
export async function importInstallation(
  place: DataPlace & { readonly secretsKey?: string },
  from: string,
): Promise<ImportResult> {
  const { dataFolder, secretsKey } = place;
  return await withStore(place, async (db, blobs) => {
    const result = await importDatabase({ db, blobs, from });
    const vault = await readVault(dataFolder, secretsKey);
    const keyProblem = await findKeyProblem(db, {
      keyIds: vault?.keyIds ?? [],
      file: secretsKeyFile(dataFolder),
      isSetting: secretsKey !== undefined,
    });
    const missingBlobs = await reportMissingBlobs({
      db,
      blobs,
      columns: runBlobs,
      log: { error: () => {} },
      goOn: async () => {},
    });
    return { ...result, keyProblem, missingBlobs };
  });
}

interface Kind {
  readonly rows: SealedRows;
  describe(count: number): string;
}

const kinds: readonly Kind[] = [
  { rows: sealedSecrets, describe: (n) => `${n} stored ${n === 1 ? 'secret' : 'secrets'}` },
  { rows: sealedRunSecrets, describe: (n) => `${n} ${n === 1 ? 'secret' : 'secrets'} of runs` },
  { rows: sealedCredentials, describe: (n) => `${n} ${n === 1 ? 'credential' : 'credentials'} of code hosts` },
  { rows: sealedServers, describe: (n) => `the values of ${n} MCP ${n === 1 ? 'server' : 'servers'}` },
  { rows: sealedWebhooks, describe: (n) => `the secrets of ${n} ${n === 1 ? 'webhook' : 'webhooks'}` },
  {
    rows: sealedSubscriptions,
    describe: (n) => `the secrets of ${n} event ${n === 1 ? 'subscription' : 'subscriptions'}`,
  },
];

/** Checks that the keys decrypt every encrypted row of the database. Returns null, or the fault and which file to copy. */
async function findKeyProblem(db: Queryable, place: KeyPlace): Promise<string | null> {
  const sealed: string[] = [];
  for (const { rows, describe } of kinds) {
    const [row] = await db.query(rows.countOthers, [place.keyIds]);
    if (row && row.count > 0) sealed.push(describe(row.count));
  }
  if (sealed.length === 0) return null;
  return describeKeyProblem(place, {
    sealed: sealed.join(', '),
    effect: 'so runs, deliveries and webhooks that need them fail',
    afterwards: 'failed deliveries are sent then',
    otherwise: 'rotate the secrets of webhooks and subscriptions, and store all others again',
  });
}
