import { randomUUID } from 'node:crypto';
import type { Database } from '../../../platform/store/database/database.ts';
import { defineStatement, json, uuid } from '../../../platform/store/database/statement.ts';
import type { ProviderName } from '../../models/providers.ts';
import type { RunTokenHolder } from '../model-usage.ts';
import { recordUsageWithin } from '../record-usage.ts';

/** A request with the facts that are known before its answer arrives. */
export interface KnownUsage {
  readonly holder: RunTokenHolder;
  readonly provider: ProviderName;
  readonly promptTokens: number;
  /** Minimum cost of the prompt in US dollars. */
  readonly chargedUsd: number;
}

const takeLost = defineStatement({
  name: 'take_lost_model_requests',
  text: `
    DELETE FROM open_model_requests WHERE id IN (
      SELECT o.id FROM open_model_requests o
      WHERE o.created_at < now() - interval '1 minute' AND o.service_instance_id <> ALL($1::uuid[])
      FOR UPDATE SKIP LOCKED LIMIT 1)
    RETURNING id, known_usage`,
  row: { id: uuid, known_usage: json<KnownUsage>() },
});

/** Finds a request that is so old that it may be lost. */
export const oldRequests = defineStatement({
  name: 'find_old_model_requests',
  text: `SELECT FROM open_model_requests WHERE created_at < now() - interval '1 minute' LIMIT 1`,
  row: {},
});

/** Maximum number of requests that one call records. */
const maxTaken = 1_000;

/**
 * Records requests whose service process died. Only the cost of their prompts is recorded, because the length of their answers is unknown.
 * Returns the number of recorded requests. `alive` are the processes with a heartbeat in the last minute: other processes have lost their
 * connections to the providers. A request waits longer than this minute for the budget (`admit.ts`), so it is not refused because another
 * process died.
 */
export async function recordLostRequests(db: Database, alive: readonly string[]): Promise<number> {
  let count = 0;
  while (count < maxTaken && (await recordLostRequest(db, alive))) count += 1;
  return count;
}

/**
 * Records one request in a separate transaction, because the rows of a run and of the team must be locked in a fixed order. A transaction
 * for two runs would break this order.
 */
async function recordLostRequest(db: Database, alive: readonly string[]): Promise<boolean> {
  return await db.transaction(async (tx) => {
    const [lost] = await tx.query(takeLost, [alive]);
    if (!lost) return false;
    const { known_usage: known } = lost;
    await recordUsageWithin(tx, {
      ...known.holder,
      provider: known.provider,
      // Record the request under a new id. If the process was only suspended for a while, it later reports the request with the original
      // id, and this report is then recorded too.
      requestId: randomUUID(),
      inputTokens: known.promptTokens,
      outputTokens: 0,
      cacheReadTokens: 0,
      cacheWriteTokens: 0,
      costUsd: known.chargedUsd,
      breakdown: { input: known.chargedUsd, output: 0, cacheRead: 0, cacheWrite: 0 },
      toolsUsd: 0,
      chargedUsd: known.chargedUsd,
      isAnswer: true,
      status: 502,
      durationMs: 0,
    });
    return true;
  });
}
