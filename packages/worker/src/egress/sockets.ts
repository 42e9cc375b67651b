import type { Socket } from 'node:net';
import type { DeniedReason } from '@runyard/contract/egress/denied';

/** Counts the connections of all sandboxes of a worker. */
export interface ConnectionBudget {
  /** Returns false if there are as many as there may be. */
  take(): boolean;
  give(): void;
}

export function connectionBudget(most: number): ConnectionBudget {
  let open = 0;
  return {
    take() {
      if (open >= most) return false;
      open += 1;
      return true;
    },
    give() {
      open -= 1;
    },
  };
}

export interface SocketLimits {
  /** Bytes of the sandbox in both directions together. */
  readonly maxBytes: number;
  /** Longest silence of a connection, and its longest time. */
  readonly idleMs: number;
  readonly longestMs: number;
  /** Pause between two counts of the bytes. */
  readonly countMs: number;
}

/** The connections of one sandbox to its proxy. */
export interface SandboxSockets {
  /** Takes a connection under the limits, or destroys it and returns why. */
  admit(socket: Socket): DeniedReason | undefined;
  close(): void;
}

/** Keeps the connections of a sandbox within their limits. `onFull` is called once, when all bytes are used. */
export function sandboxSockets(limits: SocketLimits, budget: ConnectionBudget, onFull: () => void): SandboxSockets {
  const open = new Set<Socket>();
  let bytesOfEnded = 0;
  let isFull = false;
  let counting: NodeJS.Timeout | undefined;

  const bytesOf = ({ bytesRead, bytesWritten }: Socket): number => bytesRead + bytesWritten;
  const destroyAll = (): void => {
    for (const socket of open) socket.destroy();
  };
  const count = (): void => {
    const bytes = [...open].reduce((sum, socket) => sum + bytesOf(socket), bytesOfEnded);
    if (isFull || bytes <= limits.maxBytes) return;
    isFull = true;
    destroyAll();
    onFull();
  };

  return {
    admit(socket) {
      socket.on('error', () => socket.destroy());
      const reason = isFull ? 'too_many_bytes' : budget.take() ? undefined : 'too_many_connections';
      if (reason !== undefined) {
        socket.destroy();
        return reason;
      }
      open.add(socket);
      counting ??= setInterval(count, limits.countMs).unref();
      socket.setTimeout(limits.idleMs, () => socket.destroy());
      const end = setTimeout(() => socket.destroy(), limits.longestMs).unref();
      socket.once('close', () => {
        clearTimeout(end);
        budget.give();
        open.delete(socket);
        bytesOfEnded += bytesOf(socket);
        count();
        if (open.size > 0) return;
        clearInterval(counting);
        counting = undefined;
      });
      return undefined;
    },
    close() {
      clearInterval(counting);
      destroyAll();
    },
  };
}
