import { routes } from '@runyard/contract/routes';
import type { Settings } from '@runyard/contract/settings/settings';
import type { FastifyInstance } from 'fastify';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import { trustProxies } from '../../platform/serving/trusted-proxies.ts';
import type { Database } from '../../platform/store/database/database.ts';
import type { ExecutionDeps } from '../../runs/executions/deps.ts';
import { serviceSilentSeconds } from '../../runs/executions/lease/heartbeat.ts';
import { queuedExecutions } from '../../runs/executions/queue/assign.ts';
import { isOperatorHere } from '../../team/access/keys/operator.ts';
import type { KeyWatch } from '../../team/access/keys/watch.ts';
import { serve } from '../../team/access/serve.ts';
import { enterPool } from '../../team/access/worker-pools/enter.ts';
import type { Edge } from '../edge.ts';
import { listConnectedWorkers, listHostedWorkers } from './connected.ts';
import { type Hub, openHub } from './hub.ts';
import { forgetUnusedInstances } from './instances.ts';
import { dropConnectionsOfDeadServices } from './lost-connections.ts';
import type { WorkerPrincipal } from './rights.ts';
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

/** The routes that list the connected workers and the addresses of the installation's workers. */
const workerRoutes = (db: Database, egressRanges: readonly string[]): readonly ServedRoute[] => [
  serve(routes.listConnectedWorkers, async ({ principal }) => ({
    workers: await listConnectedWorkers(db, principal.teamId),
    ...((await isOperatorHere(db, principal)) ? { hosted_workers: await listHostedWorkers(db) } : {}),
  })),
  serve(routes.getEgressRanges, async () => ({ cidrs: [...egressRanges] })),
];

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
