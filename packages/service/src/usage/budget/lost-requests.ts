import { randomUUID } from 'node:crypto';
import type { ProviderName } from '../../models/providers.ts';
import type { Database } from '../../store/database/database.ts';
import { defineStatement, json, uuid } from '../../store/database/statement.ts';
import type { RunTokenHolder } from '../model-usage.ts';
import { recordUsageWithin } from '../record-usage.ts';

/** A request, as it is known before its answer. */
export interface KnownUsage {
  readonly holder: RunTokenHolder;
  readonly provider: ProviderName;
  readonly promptTokens: number;
  /** Least cost of the prompt, US dollars. */
  readonly chargedUsd: number;
}

/** A service process without a sign of life for two minutes has lost the connections to the providers. */
const takeLost = defineStatement({
  name: 'take_lost_model_requests',
  text: `
    DELETE FROM open_model_requests WHERE id IN (
      SELECT o.id FROM open_model_requests o
      WHERE o.created_at < now() - interval '2 minutes' AND NOT EXISTS (
        SELECT FROM service_instances s WHERE s.id = o.service_instance_id AND s.seen_at > now() - interval '2 minutes')
      ORDER BY o.id FOR UPDATE SKIP LOCKED LIMIT 100)
    RETURNING id, known_usage`,
  row: { id: uuid, known_usage: json<KnownUsage>() },
});

/**
 * Accounts for requests whose service process died: with their prompts, because nobody knows how far their answers came. Returns
 * their number.
 */
export async function recordLostRequests(db: Database): Promise<number> {
  return await db.transaction(async (tx) => {
    const lost = await tx.query(takeLost);
    for (const { known_usage: known } of lost) {
      await recordUsageWithin(tx, {
        ...known.holder,
        provider: known.provider,
        // Not its own id: a process that was only stopped for a while reports the request itself, and its answer counts then.
        requestId: randomUUID(),
        inputTokens: known.promptTokens,
        outputTokens: 0,
        cacheReadTokens: 0,
        cacheWriteTokens: 0,
        costUsd: known.chargedUsd,
        breakdown: { input: known.chargedUsd, output: 0, cacheRead: 0, cacheWrite: 0 },
        chargedUsd: known.chargedUsd,
        status: 502,
        durationMs: 0,
      });
    }
    return lost.length;
  });
}
