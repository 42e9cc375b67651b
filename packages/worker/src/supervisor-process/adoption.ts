import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { filesOf } from '../supervisor-client/files.ts';
import { openLines } from '../supervisor-client/lines.ts';
import type { Challenge, SupervisorProof, WorkerProof } from '../supervisor-client/messages.ts';
import { isProof, proofOf } from '../supervisor-client/proof.ts';
import type { Supervision, WorkerLines } from './hold-sandbox.ts';

/** Time in which a connected worker must prove that it knows the secret. */
const proofMs = 5000;

/**
 * Listens for the next worker of a sandbox. Both sides prove that they know the secret of the folder. So another program can neither
 * get the sandbox nor pretend to be the supervisor. While a worker is connected to the sandbox, no other worker is accepted. Returns a
 * function that stops listening.
 */
export async function listenForAdoption(folder: string, supervision: Supervision): Promise<() => void> {
  const secret = await readFile(filesOf(folder).secret, 'utf8');
  const server = createServer((socket) => admit(socket, secret, supervision));
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(filesOf(folder).control, resolve);
  });
  server.unref();
  return () => void server.close();
}

function admit(socket: Socket, secret: string, supervision: Supervision): void {
  const nonce = randomBytes(16).toString('hex');
  const late = setTimeout(() => socket.destroy(), proofMs);
  const lines = openLines<Challenge | SupervisorProof, WorkerProof>(socket, {
    message(given) {
      clearTimeout(late);
      const isWorker = isProof(given.proof, proofOf(secret, 'worker', nonce));
      if (!isWorker || !supervision.canBeAdopted()) return lines.destroy();
      lines.send({ proof: proofOf(secret, 'supervisor', String(given.nonce)) });
      supervision.serve(lines as unknown as WorkerLines, given.adoptSeconds);
    },
    closed: () => clearTimeout(late),
  });
  lines.send({ nonce });
}
