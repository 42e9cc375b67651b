import type { Socket } from 'node:net';

export interface SocketLimits {
  /** Most bytes that a sandbox may send and receive in total. */
  readonly maxBytes: number;
  /** A connection closes after a silence of `idleMs`, and in any case after `longestMs`. */
  readonly idleMs: number;
  readonly longestMs: number;
  /** Pause between two counts of the bytes. */
  readonly countMs: number;
}

/** The connections of one sandbox to its proxy. */
export interface SandboxSockets {
  /** Adds a connection, to which the limits apply. Returns false and destroys the connection if the allowed bytes are used up. */
  admit(socket: Socket): boolean;
  close(): void;
}

/** Keeps the connections of a sandbox within their limits. `onFull` is called once, when all bytes are used. */
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
