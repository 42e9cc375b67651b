import { ApiError, type Client } from '@runyard/client';
import { delay } from '@runyard/system/backoff';

const cancelPatienceMs = 35_000;

/** Cancels a run. Retries while the run is being assigned to a worker (PENDING, at most 30 s), because it cannot be cancelled then. */
export async function cancelWithPatience(client: Client, runId: string): Promise<void> {
  const deadline = performance.now() + cancelPatienceMs;
  for (;;) {
    try {
      await client.cancelRun({ params: { runId } });
      return;
    } catch (error) {
      if (!(error instanceof ApiError && error.retryable) || performance.now() > deadline) throw error;
      await delay(200);
    }
  }
}
