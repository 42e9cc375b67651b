import { type FollowUp, watchInbox } from '../service/inbox.ts';
import type { FollowUpFiles } from './follow-up-files.ts';
import type { TurnRunner } from './turn-runner.ts';
import type { TurnsEnd, TurnsOptions } from './turns-options.ts';

/** Follow-ups that wait for their turn. */
interface FollowUpQueue {
  add(followUp: FollowUp): void;
  /** Ends the queue. From now on, the queue accepts no follow-ups and also drops the waiting follow-ups. */
  end(): void;
  /**
   * Waits for the next follow-up for which `accept` returns true, and drops the follow-ups before it. Returns undefined when the queue has
   * ended.
   */
  next(accept: (followUp: FollowUp) => boolean): Promise<FollowUp | undefined>;
}

export function followUpQueue(): FollowUpQueue {
  const waiting: FollowUp[] = [];
  let ended = false;
  let wake = () => {};
  return {
    add(followUp) {
      waiting.push(followUp);
      wake();
    },
    end() {
      ended = true;
      wake();
    },
    async next(accept) {
      while (!ended) {
        const next = waiting.shift();
        if (next !== undefined && accept(next)) return next;
        if (next !== undefined) continue;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      return undefined;
    },
  };
}

export interface InboxMessagesOptions {
  readonly turns: TurnsEnd & Pick<TurnsOptions, 'client' | 'reporting' | 'approvals' | 'changes'>;
  readonly runner: TurnRunner;
  readonly followUps: FollowUpQueue;
  readonly files: FollowUpFiles;
}

/** Reads the inbox, and passes its items to the turn in progress, to the open question, or to the queue of follow-ups. */
export function receiveInbox({ turns, runner, followUps, files }: InboxMessagesOptions): void {
  const { client, stop, approvals } = turns;

  async function receive(followUp: FollowUp): Promise<void> {
    const { attachments, message } = followUp;
    let answer = message;
    if (attachments !== undefined && approvals.isAwaited(followUp)) {
      const names = await files.written(followUp).then(
        (written) => written.map(({ name }) => `attachments/${name}`).join(', '),
        (error: unknown) => `(they could not be written: ${error instanceof Error ? error.message : String(error)})`,
      );
      answer = `${message}\n\nAttached files: ${names}`.trim();
    }
    if (approvals.answer({ ...followUp, message: answer })) files.forget(followUp);
    else followUps.add(followUp);
  }

  void watchInbox({
    client,
    signal: turns.reporting,
    onCancel: () => stop.stop('cancelled'),
    onSuperseded: turns.onSuperseded,
    // End the turn that waits for a person, so that the memory of the harness is saved before the agent exits.
    onLeave: () => {
      followUps.end();
      runner.endForLeave();
    },
    onFollowUp: (followUp) => void receive(followUp),
    onChanges: turns.changes.ask,
    onHeld: approvals.askHeld,
    onInterrupt: (turn) => runner.interrupt(turn),
    waitMs: turns.inboxWaitMs,
  });
}
