import { ApiError, type Client } from '@runyard/client';
import { delay } from '@runyard/system/backoff';

const cancelPatienceMs = 35_000;

/**
 * Cancels a run. While the service assigns the run to a worker (state PENDING, at most 30 s), the service refuses to cancel the run, so
 * this function tries again.
 */
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
