import type { InboxItem } from '@runyard/contract/agent/agent-protocol';
import type { AgentRequest } from '@runyard/contract/runs/approvals';
import { delay } from '@runyard/system/backoff';
import { monotonicMs } from '../builtin-modules.ts';
import type { ServiceClient } from './client.ts';
import { ServiceRefusal, Superseded } from './errors.ts';

export type FollowUp = Extract<InboxItem, { type: 'follow_up' }>;

export interface InboxOptions {
  client: Pick<ServiceClient, 'pollInbox'>;
  signal: AbortSignal;
  onCancel: () => void;
  onSuperseded: () => void;
  /** Called when the agent must end its turn and exit. No more items follow. */
  onLeave: () => void;
  onInterrupt: (turn: number) => void;
  /** Called when a person looks at the changed files. */
  onChanges: () => void;
  /** Called when the service holds an action of the run until a person decides. */
  onHeld: (request: AgentRequest) => void;
  /** Called once for each follow-up, in order. */
  onFollowUp: (followUp: FollowUp) => void;
  waitMs?: number;
}

/** Shortest time between two requests after an empty answer, so that immediate answers do not cause a busy loop. */
const minPollMs = 250;

/**
 * Long-polls the inbox. Ends when the signal aborts, when a cancel or a leave has arrived, or when the execution is superseded. Never
 * rejects.
 */
export async function watchInbox(options: InboxOptions): Promise<void> {
  const { client, signal, waitMs = 25_000 } = options;
  const position = { after: 0, interrupted: 0, changes: 0, held: 0 };
  while (!signal.aborted) {
    const started = monotonicMs();
    try {
      const { items } = await client.pollInbox(waitMs, position, { signal });
      for (const item of items) {
        switch (item.type) {
          case 'cancel':
            return options.onCancel();
          case 'leave':
            return options.onLeave();
          case 'interrupt':
            position.interrupted = Math.max(position.interrupted, item.turn);
            options.onInterrupt(item.turn);
            break;
          case 'changes':
            position.changes = Math.max(position.changes, item.asked);
            options.onChanges();
            break;
          case 'held':
            position.held = Math.max(position.held, item.number);
            options.onHeld(item.request);
            break;
          case 'follow_up':
            if (item.position <= position.after) break;
            position.after = item.position;
            options.onFollowUp(item);
        }
      }
      if (items.length > 0) continue;
    } catch (error) {
      if (error instanceof Superseded) return options.onSuperseded();
      if (signal.aborted) return;
      process.stderr.write(`agent: inbox: ${error instanceof Error ? error.message : String(error)}\n`);
      if (error instanceof ServiceRefusal) await delay(5_000, signal).catch(() => {});
    }
    const rest = minPollMs - (monotonicMs() - started);
    if (rest > 0) await delay(rest, signal).catch(() => {});
  }
}
