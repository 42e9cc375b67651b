import { z } from 'zod';
import { maxConnectionsListed } from '../limits.ts';
import { Timestamp } from '../wire/primitives.ts';

const MissingFeature = z
  .object({ feature: z.string().describe('Name of the feature'), reason: z.string().describe('Why it is missing') })
  .meta({ id: 'MissingFeature', description: 'A feature of isolation that the sandboxes of a worker do not have' });

const WorkerSlots = z
  .object({
    used: z.int().describe('Sandboxes that work now'),
    total: z
      .int()
      .optional()
      .describe('Sandboxes that may work at the same time; absent: the worker does not report this'),
  })
  .meta({ id: 'WorkerSlots', description: 'The room of a worker' });

const WorkerDisk = z
  .object({
    free_bytes: z.int().describe('Bytes that are free for sandboxes'),
    total_bytes: z.int().describe('Size of the file system'),
  })
  .meta({ id: 'WorkerDisk', description: 'The file system of the sandboxes of a worker' });

/** One connection of a worker. A worker is one program on one machine. */
export const WorkerConnection = z
  .object({
    backend: z.string().optional().meta({
      description:
        'How its sandboxes isolate: bubblewrap, gvisor, docker, kubernetes or none. Absent: the worker is of another program, which does not say',
    }),
    features: z
      .array(z.string())
      .describe('Isolation features of its sandboxes, such as `user`, `cgroup` and `no-network`'),
    missing_features: z
      .array(MissingFeature)
      .describe('Features of isolation that its sandboxes lack, with the reason'),
    slots: WorkerSlots.describe('Its room'),
    version: z.string().optional().describe('Version of the worker; absent: the worker does not report it'),
    disk: WorkerDisk.optional().describe(
      'Disk of its sandboxes, as of about a minute ago; absent: the worker does not report it',
    ),
    draining: z.boolean().describe('True: it takes no new runs, and ends with its last one'),
    problem: z
      .string()
      .optional()
      .describe(
        'Why it takes no new runs, such as a full disk; absent: it has no problem. It takes runs again when the problem is over',
      ),
    connected_at: Timestamp.describe('When it connected, RFC 3339 in UTC'),
    last_seen_at: Timestamp.describe('When it last gave a sign of life, RFC 3339 in UTC'),
  })
  .meta({
    id: 'WorkerConnection',
    description: 'A connection of a worker, with its sandboxes, its room and its version',
  });
export type WorkerConnection = z.infer<typeof WorkerConnection>;

/** A worker that is connected now. */
export const ConnectedWorker = z
  .object({
    worker_host: z.string().meta({ description: 'The name of its workers, for `config.worker_host` of a run' }),
    connection_count: z.int().describe('Connections of workers with this name'),
    connected_at: Timestamp.describe('When the oldest of them connected, RFC 3339 in UTC'),
    last_seen_at: Timestamp.describe('When one of them last sent a message, RFC 3339 in UTC'),
    connections: z
      .array(WorkerConnection)
      .describe(`Its connections, the oldest first, at most ${maxConnectionsListed}`),
  })
  .meta({ id: 'ConnectedWorker', description: 'A worker that is connected now' });
export type ConnectedWorker = z.infer<typeof ConnectedWorker>;

export const ListConnectedSelfHostedWorkersResponse = z
  .object({
    workers: z.array(ConnectedWorker).describe('Self-hosted workers of the team, by name'),
    hosted_workers: z
      .array(ConnectedWorker)
      .optional()
      .describe(
        'Workers of the service, which take the runs that name no worker. Absent: the caller is not the operator',
      ),
  })
  .meta({
    id: 'ListConnectedSelfHostedWorkersResponse',
    description: 'Workers that are connected now',
  });

export const EgressRanges = z
  .object({
    cidrs: z
      .array(z.string())
      .describe('Networks in the notation of CIDR, each once; empty if the operator has named none'),
  })
  .meta({ id: 'EgressRanges', description: 'Addresses from which runs reach the internet' });
