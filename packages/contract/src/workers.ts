import { z } from 'zod';
import { Timestamp } from './primitives.ts';

/** The name under which a worker connects, and by which `config.worker_host` asks for it. */
export const workerName = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;

/** A self-hosted worker of the team that is connected now. */
export const ConnectedWorker = z
  .object({
    worker_host: z.string().meta({ description: 'What `config.worker_host` of a run names' }),
    connection_count: z.int(),
    connected_at: Timestamp,
    last_seen_at: Timestamp,
  })
  .meta({ id: 'ConnectedWorker' });
export type ConnectedWorker = z.infer<typeof ConnectedWorker>;

export const ListConnectedSelfHostedWorkersResponse = z
  .object({
    workers: z.array(ConnectedWorker),
  })
  .meta({ id: 'ListConnectedSelfHostedWorkersResponse' });
