import type { Settings } from '@runyard/contract/settings/settings';
import type { Domain, RowRule } from '../../platform/domain.ts';
import type { BlobStore } from '../../platform/store/blobs/blobs.ts';
import { findComposable, makeTranscriptComposer } from './compose-transcripts.ts';
import type { ExecutionDeps } from './deps.ts';
import { beatServiceInstance, forgetServiceInstance, heartbeatMs, watchArrivals } from './lease/heartbeat.ts';
import { measureQueueAndWorkers } from './queue/measure.ts';
import { findParentsWithPlace, findWaitingOrphan, releaseChildren } from './queue/release-children.ts';
import { expireWaiting, reconcilable, reconcile } from './reconcile/reconcile.ts';
import { deleteExecutionDetail, executionBlobs } from './retention.ts';

interface ExecutionDomainDeps {
  readonly executionDeps: ExecutionDeps;
  readonly blobs: BlobStore;
  /** UUID of this service process. */
  readonly serviceInstanceId: string;
  readonly settings: Pick<Settings, 'RUNYARD_METRICS_POOLS'>;
}

/** Selects the rows of workers that have been gone for a week. */
const longGoneWorkers: RowRule = { table: 'gone_workers', isOver: `gone_at < now() - interval '7 days'` };

/** Selects the rows of service processes that died: they have sent no heartbeat for an hour. */
const deadServices: RowRule = { table: 'service_instances', isOver: `seen_at < now() - interval '1 hour'` };

export function executionsDomain({
  executionDeps: deps,
  blobs,
  serviceInstanceId,
  settings,
}: ExecutionDomainDeps): Domain {
  const beat = async () => {
    const extended = await beatServiceInstance(deps, serviceInstanceId);
    if (extended > 0) {
      deps.log.info({ executions: extended }, 'leases extended: no service process was alive to renew them');
    }
  };
  return {
    name: 'executions',
    blobs: executionBlobs,
    gauges: [() => measureQueueAndWorkers(deps.db, settings.RUNYARD_METRICS_POOLS ?? [])],
    retention: { rows: [deadServices, longGoneWorkers], deleteRunDetail: deleteExecutionDetail },
    // The first heartbeat must be stored before a worker can connect, because other service processes drop the connections of a process
    // that has no heartbeat.
    open: async () => {
      await watchArrivals(deps.db);
      await beat();
    },
    loops: async () => [
      { name: 'the heartbeat of the service', everyMs: heartbeatMs(deps.timing), work: beat },
      { name: 'looking for lost notices', everyMs: 1_000, work: () => deps.notices.findLost() },
      { name: 'the reconciler', everyMs: 1_000, due: reconcilable, work: () => reconcile(deps) },
      {
        name: 'places of child runs',
        everyMs: 1_000,
        due: [findParentsWithPlace, findWaitingOrphan],
        work: () => releaseChildren(deps),
      },
      { name: 'the time limit of the queue', everyMs: 60_000, work: () => expireWaiting(deps) },
      {
        name: 'composing transcripts',
        everyMs: 2_000,
        due: [findComposable],
        work: makeTranscriptComposer({ ...deps, blobs }),
      },
    ],
    close: () => forgetServiceInstance(deps.db, serviceInstanceId),
  };
}
