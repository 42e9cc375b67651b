import type { Settings } from '@runyard/contract/settings/settings';
import type { FastifyInstance } from 'fastify';
import { trustProxies } from '../../platform/serving/trusted-proxies.ts';
import type { ExecutionDeps } from '../../runs/executions/deps.ts';
import { serviceSilentSeconds } from '../../runs/executions/lease/heartbeat.ts';
import { queuedExecutions } from '../../runs/executions/queue/assign.ts';
import type { KeyWatch } from '../../team/access/keys/watch.ts';
import { enterPool } from '../../team/access/worker-pools/enter.ts';
import type { Edge } from '../edge.ts';
import { type Hub, openHub } from './hub.ts';
import { forgetUnusedInstances } from './instances.ts';
import { dropConnectionsOfDeadServices } from './lost-connections.ts';
import type { WorkerPrincipal } from './rights.ts';
import { workerRoutes } from './routes.ts';
import { noWebSocket, serveWorkerSockets, workerSocketPath } from './socket.ts';

interface WorkerDeps {
  readonly executionDeps: ExecutionDeps;
  readonly keyWatch: Pick<KeyWatch, 'watch'>;
  /** UUID of this service process. */
  readonly serviceInstanceId: string;
  readonly settings: Pick<Settings, 'RUNYARD_EGRESS_RANGES' | 'RUNYARD_TRUSTED_PROXIES'>;
  /** See `HubOptions`. */
  readonly sidecarImage?: string | undefined;
}

/** `authenticate` returns the owner of the key in an `Authorization` header; null means 401. */
export function workersDomain(
  { executionDeps: deps, keyWatch, serviceInstanceId, settings, sidecarImage }: WorkerDeps,
  authenticate: (authorization: string | undefined) => Promise<WorkerPrincipal | null>,
): Edge {
  let opened: { readonly hub: Hub; closeSockets(): void } | undefined;
  return {
    name: 'workers',
    routes: () => workerRoutes(deps.db, settings.RUNYARD_EGRESS_RANGES),
    endpoints: async (app: FastifyInstance) => {
      const hub = openHub(deps, { serviceInstanceId, sidecarImage });
      const closeSockets = serveWorkerSockets(app.server, {
        hub,
        log: deps.log,
        authenticate,
        keyWatch,
        trustedProxies: trustProxies(settings.RUNYARD_TRUSTED_PROXIES),
        enterPool: (caller, name) => enterPool(deps.db, caller, name),
      });
      app.get(workerSocketPath, async () => {
        throw noWebSocket();
      });
      opened = { hub, closeSockets };
    },
    loops: async () => [
      {
        name: 'assigning work',
        everyMs: 1_000,
        due: [queuedExecutions],
        work: async () => await opened?.hub.dispatch(),
      },
      { name: 'recording lost connections', everyMs: 1_000, work: async () => await opened?.hub.recordLosses() },
      { name: 'sending stop orders', everyMs: 1_000, work: async () => await opened?.hub.sendStopOrders() },
      {
        name: 'the sweep of dead services',
        everyMs: 5_000,
        work: () => dropConnectionsOfDeadServices(deps, serviceInstanceId, serviceSilentSeconds),
      },
      { name: 'the sweep of worker instances', everyMs: 60_000, work: () => forgetUnusedInstances(deps.db) },
    ],
    close: async () => {
      opened?.closeSockets();
      await opened?.hub.close();
    },
  };
}
