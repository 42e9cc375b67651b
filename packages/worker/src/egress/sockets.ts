import type { Socket } from 'node:net';

export interface SocketLimits {
  /** Maximum number of bytes that a sandbox may send and receive in total. */
  readonly maxBytes: number;
  /** A connection is closed after `idleMs` without data, and in any case after `longestMs`. */
  readonly idleMs: number;
  readonly longestMs: number;
  /** Milliseconds between two counts of the bytes of all connections. */
  readonly countMs: number;
}

/** The connections of one sandbox to its proxy. */
export interface SandboxSockets {
  /** Applies the limits to a new connection. If the allowed bytes are used up, destroys the connection and returns false. */
  admit(socket: Socket): boolean;
  close(): void;
}

/** Closes connections of a sandbox that exceed a limit. `onFull` is called once, when the allowed bytes are used up. */
export function sandboxSockets(limits: SocketLimits, onFull: () => void): SandboxSockets {
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
      if (isFull) {
        socket.destroy();
        return false;
      }
      open.add(socket);
      counting ??= setInterval(count, limits.countMs).unref();
      socket.setTimeout(limits.idleMs, () => socket.destroy());
      const end = setTimeout(() => socket.destroy(), limits.longestMs).unref();
      socket.once('close', () => {
        clearTimeout(end);
        open.delete(socket);
        bytesOfEnded += bytesOf(socket);
        count();
        if (open.size > 0) return;
        clearInterval(counting);
        counting = undefined;
      });
      return true;
    },
    close() {
      clearInterval(counting);
      destroyAll();
    },
  };
}
