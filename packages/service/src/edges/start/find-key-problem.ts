/** Checks whether the keys of a data folder decrypt the secrets that all domains have stored. */

import { sealedServerSecrets } from '../../platform/secrets/config-seal.ts';
import { describeKeyProblem, type KeyPlace } from '../../platform/secrets/key-problem.ts';
import type { SealedRows } from '../../platform/secrets/seal-again.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import { sealedSubscriptions } from '../../runs/subscriptions/secret.ts';
import { sealedCredentials } from '../../team/code-hosts/records.ts';
import { sealedServers } from '../../team/mcp/sealed-values.ts';
import { sealedProviders } from '../../team/models/stored-providers.ts';
import { sealedRunSecrets, sealedSecrets } from '../../team/stored-secrets/sealed-rows.ts';
import { sealedWebhooks } from '../../triggers/webhooks/ingest/secrets.ts';

interface Kind {
  readonly rows: SealedRows;
  describe(count: number): string;
}

const kinds: readonly Kind[] = [
  { rows: sealedSecrets, describe: (n) => `${n} stored ${n === 1 ? 'secret' : 'secrets'}` },
  { rows: sealedRunSecrets, describe: (n) => `${n} ${n === 1 ? 'secret' : 'secrets'} of runs` },
  { rows: sealedCredentials, describe: (n) => `${n} ${n === 1 ? 'credential' : 'credentials'} of code hosts` },
  { rows: sealedProviders, describe: (n) => `${n} ${n === 1 ? 'key' : 'keys'} of providers of models` },
  { rows: sealedServers, describe: (n) => `the values of ${n} MCP ${n === 1 ? 'server' : 'servers'}` },
  { rows: sealedServerSecrets, describe: () => 'the headers of MCP servers in configurations' },
  { rows: sealedWebhooks, describe: (n) => `the secrets of ${n} ${n === 1 ? 'webhook' : 'webhooks'}` },
  {
    rows: sealedSubscriptions,
    describe: (n) => `the secrets of ${n} event ${n === 1 ? 'subscription' : 'subscriptions'}`,
  },
];

/**
 * Checks that the keys decrypt every encrypted row of the database. Returns null if they do. Otherwise returns a text with the fault and
 * the file to copy.
 */
export async function findKeyProblem(db: Queryable, place: KeyPlace): Promise<string | null> {
  const sealed: string[] = [];
  for (const { rows, describe } of kinds) {
    const [row] = await db.query(rows.countOthers, [place.keyIds]);
    if (row && row.count > 0) sealed.push(describe(row.count));
  }
  if (sealed.length === 0) return null;
  return describeKeyProblem(place, {
    sealed: sealed.join(', '),
    effect: 'so runs, deliveries and webhooks that need the secrets fail',
    afterwards: 'failed deliveries are sent then',
    otherwise: 'rotate the secrets of webhooks and subscriptions, and store all others again',
  });
}
