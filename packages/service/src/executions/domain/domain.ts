import type { Domain, RowRule } from '../../domain.ts';
import type { BlobStore } from '../../store/blobs/blobs.ts';
import { executionBlobs } from '../blob-columns.ts';
import type { Engine } from '../engine.ts';
import { beatServiceInstance, forgetServiceInstance, heartbeatMs } from '../lease/heartbeat.ts';
import { expireWaiting, reconcile } from '../reconcile/reconcile.ts';
import { deleteExecutionDetail } from '../retention/delete-detail.ts';
import { composeTranscripts } from '../transcript/compose-transcripts.ts';

interface ExecutionDeps {
  readonly engine: Engine;
  readonly blobs: BlobStore;
  /** UUID of this service process. */
  readonly serviceInstanceId: string;
}

/** Service processes that died. */
const deadServices: RowRule = { table: 'service_instances', isOver: `seen_at < now() - interval '1 hour'` };

export function executionsDomain({ engine, blobs, serviceInstanceId }: ExecutionDeps): Domain {
  const beat = async () => {
    const extended = await beatServiceInstance(engine, serviceInstanceId);
    if (extended > 0) {
      engine.log.info({ executions: extended }, 'leases extended: no service process was alive to renew them');
    }
  };
  return {
    name: 'executions',
    blobs: executionBlobs,
    retention: { rows: [deadServices], deleteRunDetail: deleteExecutionDetail },
    // Before a worker can connect: connections of a service process without a sign of life are dropped.
    open: beat,
    loops: async () => [
      { name: 'the heartbeat of the service', everyMs: heartbeatMs(engine.timing), work: beat },
      { name: 'the reconciler', everyMs: 1_000, work: () => reconcile(engine) },
      { name: 'the time limit of the queue', everyMs: 60_000, work: () => expireWaiting(engine) },
      { name: 'composing transcripts', everyMs: 2_000, work: () => composeTranscripts(engine.db, blobs) },
    ],
    close: () => forgetServiceInstance(engine.db, serviceInstanceId),
  };
}
