import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Connection } from './connection/connection.ts';
import type { Outbox } from './connection/outbox.ts';
import type { Executions } from './executions/executions.ts';
import type { SandboxBackend } from './sandboxes/sandbox.ts';

/**
 * Maximum time that the worker waits, before it ends, until the service has confirmed the last messages. `lastWordsMs` is for a worker
 * that has finished its runs. `lastWordsStoppingMs` is for a worker that must end its runs at once, or that leaves its sandboxes to the next
 * worker.
 */
const lastWordsMs = 5000;
const lastWordsStoppingMs = 1500;
/** A worker that leaves its sandboxes to the next worker waits at most this long until sandboxes that are being made have started. */
const settleMs = 5000;

export interface EndingParts {
  readonly executions: Executions;
  readonly outbox: Outbox;
  readonly connection: Pick<Connection, 'sayHello'>;
  readonly backend: SandboxBackend;
  /** Releases all resources of the worker. Called once, when no new executions are accepted any more. */
  readonly close: () => Promise<void>;
  readonly log: Logger;
}

/** The ways in which a worker ends. */
export interface Ending {
  drain(): void;
  leave(): Promise<void>;
  stop(): Promise<void>;
  /** Ends the worker at once. */
  end(exitCode: 0 | 2): Promise<void>;
  /** Ends a draining worker if no execution is left. */
  endWhenIdle(): void;
  readonly drained: Promise<{ exitCode: 0 | 2 }>;
}

/** Returns the functions that end a worker. `Worker` describes them. */
export function makeEnding({ executions, outbox, connection, backend, close, log }: EndingParts): Ending {
  const { promise: drained, resolve: settle } = Promise.withResolvers<{ exitCode: 0 | 2 }>();
  let ending: Promise<void> | undefined;
  let stopping = false;
  let leaving = false;

  const end = (exitCode: 0 | 2): Promise<void> => {
    ending ??= (async () => {
      executions.drain();
      await close();
      settle({ exitCode });
    })();
    return ending;
  };

  const endWhenIdle = (): void => {
    if (leaving || !executions.isDraining() || executions.list().length > 0) return;
    if (outbox.kept().length === 0) return void end(0);
    setTimeout(() => void end(0), stopping ? lastWordsStoppingMs : lastWordsMs);
  };

  /** Rejects new executions from now on, and says so. */
  const refuseNew = (message: string): void => {
    executions.drain();
    backend.drain?.();
    log.info({ executions: executions.list().length }, message);
    connection.sayHello();
  };

  const drain = (): void => {
    if (executions.isDraining()) return;
    refuseNew('draining: no new executions');
    endWhenIdle();
  };

  return {
    drained,
    end,
    endWhenIdle,
    drain,
    async leave() {
      if (leaving || stopping) return;
      leaving = true;
      refuseNew('leaving: the next worker adopts the sandboxes');
      // Waits until each claimed execution has a sandbox, so that the next worker finds these sandboxes.
      await Promise.race([executions.settled(), sleep(settleMs)]);
      await Promise.race([outbox.drained(), sleep(lastWordsStoppingMs)]);
      await end(0);
    },
    async stop() {
      stopping = true;
      drain();
      executions.stopAll();
      endWhenIdle();
      await drained;
    },
  };
}
