/**
 * Holds one sandbox after the other: its processes, its relay to the service, its limits and its end. It goes on when its worker ends, and
 * the next worker of the data folder adopts the sandbox. Its argument is a label by which workers find it.
 */
import { readFileSync } from 'node:fs';
import { Socket } from 'node:net';
import { closeInheritedDescriptors } from '../inherited-descriptors.ts';
import { filesOf } from '../supervised/files.ts';
import { openLines } from '../supervised/lines.ts';
import { listenForAdoption } from './adoption.ts';
import { type Supervision, supervise, type WorkerLines } from './supervise.ts';

/** Descriptor of the connection to the worker that started this program. */
const workerDescriptor = 3;

closeInheritedDescriptors([workerDescriptor]);
const connection = openLines<never, never>(new Socket({ fd: workerDescriptor }), { message() {}, closed() {} });
awaitSandbox(connection as WorkerLines);

/** Waits until the worker orders the next sandbox. Ends this process if the worker goes. */
function awaitSandbox(worker: WorkerLines): void {
  worker.handle({
    message(order) {
      // A late order is about the sandbox before.
      if (order.type !== 'prepare') return;
      // Later orders wait until the supervision takes them.
      worker.hold();
      void beginSandbox(order.folder).then((supervision) => supervision.serve(worker, undefined, order));
    },
    closed: () => process.exit(0),
  });
}

/** Begins to supervise the sandbox of a folder. */
async function beginSandbox(folder: string): Promise<Supervision> {
  const secret = readFileSync(filesOf(folder).secret, 'utf8');
  let stopListening = () => {};
  const supervision = supervise(folder, (next) => {
    stopListening();
    if (next === undefined) process.exit(0);
    awaitSandbox(next);
  });
  stopListening = await listenForAdoption(folder, secret, supervision);
  return supervision;
}
