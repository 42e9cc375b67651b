import { chmod, chown, rm } from 'node:fs/promises';
import type { Server } from 'node:http';
import { answerInTurn } from '@runyard/system/answer-in-turn';

/** A server on the Unix socket of one sandbox. */
export interface Relay {
  /** Ends the connections of the server and removes the socket. */
  close(): Promise<void>;
}

/**
 * Opens the server on a socket. It answers the requests of a connection one after another. Only `uid` (default: the user of this process) can connect to the socket.
 */
export async function listenOnSocket(server: Server, socketPath: string, uid?: number): Promise<Relay> {
  answerInTurn(server);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ path: socketPath }, () => resolve());
  });
  await chmod(socketPath, 0o600);
  if (uid !== undefined) await chown(socketPath, uid, uid);
  return {
    async close() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
      await rm(socketPath, { force: true });
    },
  };
}
