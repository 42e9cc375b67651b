/**
 * The supervisor program. A supervisor is the parent of the processes of some sandboxes. On a thread of its own, it forwards the requests
 * of the sandboxes to the service. It watches the limits of the sandboxes, and reports when a sandbox has ended. The supervisor continues when its worker ends, and
 * the next worker of the data folder adopts the sandboxes. The argument is a label by which workers find the supervisor.
 */
import { Socket } from 'node:net';
import { parentPort, workerData } from 'node:worker_threads';
import { useProxy } from '@runyard/system/outgoing/outgoing';
import { trustCaFile } from '@runyard/system/trust-authorities';
import { closeInheritedDescriptors } from '../inherited-descriptors.ts';
import { relayThreadData, startRelayThread } from '../relay-thread/relay-thread.ts';
import { serveRelays } from '../relay-thread/serve-relays.ts';
import { type Addressed, shareLines } from '../supervisor-client/channels.ts';
import { openLines } from '../supervisor-client/lines.ts';
import type { Report } from '../supervisor-client/messages.ts';
import { listenForAdoption } from './adoption.ts';
import { holdSandbox, type SandboxOrder } from './hold-sandbox.ts';

/** Descriptor of the connection to the worker that started this program. */
const workerDescriptor = 3;

trustCaFile(process.env.RUNYARD_CA_FILE || undefined);
useProxy(process.env);
if (parentPort !== null && workerData === relayThreadData) serveRelays(parentPort);
else supervise();

/** Obeys the worker until all sandboxes have ended. */
function supervise(): void {
  closeInheritedDescriptors([workerDescriptor]);
  const relays = startRelayThread(process.argv[1] ?? '');
  const sandboxes = new Set<string>();
  let hasWorker = true;
  const connection = openLines<Addressed<Report>, Addressed<SandboxOrder>>(new Socket({ fd: workerDescriptor }), {
    message() {},
    closed() {},
  });
  const channelOf = shareLines<Report, SandboxOrder>(connection, {
    message(sandbox, order) {
      // Ignores all other orders about sandboxes without a channel, because these sandboxes have already ended.
      if (order.type === 'prepare') hold(sandbox, order);
    },
    closed() {
      hasWorker = false;
      endIfFree();
    },
  });

  /** Begins to supervise a sandbox. */
  const hold = (sandbox: string, order: Extract<SandboxOrder, { type: 'prepare' }>): void => {
    sandboxes.add(sandbox);
    const supervision = holdSandbox(order.folder, {
      listen: (supervision) => listenForAdoption(order.folder, supervision),
      relays,
      onOver() {
        sandboxes.delete(sandbox);
        endIfFree();
      },
    });
    supervision.serve(channelOf(sandbox), undefined, order);
  };

  /** Ends this process if it has no sandbox and no worker is connected, because then the process can get no further sandbox. */
  const endIfFree = (): void => {
    if (!hasWorker && sandboxes.size === 0) process.exit(0);
  };
}
