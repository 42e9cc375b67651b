import { wait } from './backoff.ts';
import { type ServiceClient, ServiceRefusal, Superseded } from './client.ts';

export interface InboxOptions {
  client: Pick<ServiceClient, 'pollInbox'>;
  signal: AbortSignal;
  onCancel: () => void;
  onSuperseded: () => void;
  waitMs?: number;
}

/** An answer that comes at once and brings nothing must not make a busy loop. */
const minPollMs = 250;

/** Long-polls the inbox until the signal aborts, a cancel has come, or the execution is superseded. Never rejects. */
export async function watchInbox(options: InboxOptions): Promise<void> {
  const { client, signal, waitMs = 25_000 } = options;
  while (!signal.aborted) {
    const started = performance.now();
    try {
      const { items } = await client.pollInbox(waitMs, { signal });
      if (items.some((item) => item.type === 'cancel')) return options.onCancel();
    } catch (error) {
      if (error instanceof Superseded) return options.onSuperseded();
      if (signal.aborted) return;
      process.stderr.write(`agent: inbox: ${error instanceof Error ? error.message : String(error)}\n`);
      if (error instanceof ServiceRefusal) await wait(5_000, signal).catch(() => {});
    }
    const rest = minPollMs - (performance.now() - started);
    if (rest > 0) await wait(rest, signal).catch(() => {});
  }
}
