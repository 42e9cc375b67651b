import { z } from 'zod';
import { Timestamp } from '../wire/primitives.ts';

/** A self-hosted worker of the team that is connected now. */
export const ConnectedWorker = z
  .object({
    worker_host: z.string().meta({ description: 'What `config.worker_host` of a run names' }),
    connection_count: z.int().describe('Connections of workers with this name'),
    connected_at: Timestamp.describe('When the oldest of them connected, RFC 3339 in UTC'),
    last_seen_at: Timestamp.describe('When one of them last gave a sign of life, RFC 3339 in UTC'),
  })
  .meta({ id: 'ConnectedWorker', description: 'A self-hosted worker that is connected now' });
export type ConnectedWorker = z.infer<typeof ConnectedWorker>;

export const ListConnectedSelfHostedWorkersResponse = z
  .object({
    workers: z.array(ConnectedWorker).describe('Workers, by name'),
  })
  .meta({
    id: 'ListConnectedSelfHostedWorkersResponse',
    description: 'Self-hosted workers of the team that are connected now',
  });

export const EgressRanges = z
  .object({
    cidrs: z
      .array(z.string())
      .describe('Networks in the notation of CIDR, each once; empty if the operator has named none'),
  })
  .meta({ id: 'EgressRanges', description: 'Addresses from which runs reach the internet' });
