import { z } from 'zod';
import { WaitingAfterChange } from '../runs/acceptances.ts';
import { Timestamp } from '../wire/primitives.ts';
import { UserProfile } from '../wire/profiles.ts';

const WorkerPoolConnector = z
  .object({
    principal: UserProfile.describe('Person or service account whose keys connect'),
    added_by: UserProfile.describe('Person who added it'),
    added_at: Timestamp.describe('When it was added, RFC 3339 in UTC'),
  })
  .meta({
    id: 'WorkerPoolConnector',
    description: 'Somebody besides the owner whose keys connect to a pool of workers',
  });

/** A pool: all self-hosted workers of a team that connect under the same name. */
export const WorkerPool = z
  .object({
    name: z.string().meta({ description: 'Name of its workers, for `config.worker_host` of a run' }),
    owner: UserProfile.describe(
      'Person or service account whose key connected first, or the administrator who took it over',
    ),
    connectors: z.array(WorkerPoolConnector).describe('Others whose keys connect'),
    created_at: Timestamp.describe('When the first worker connected, RFC 3339 in UTC'),
    waiting: WaitingAfterChange.optional(),
  })
  .meta({
    id: 'WorkerPool',
    description: 'A name under which self-hosted workers connect, and the people and agents whose keys may connect',
  });
export type WorkerPool = z.infer<typeof WorkerPool>;

export const ListWorkerPoolsResponse = z
  .object({ pools: z.array(WorkerPool).describe('Pools, by name') })
  .meta({ id: 'ListWorkerPoolsResponse', description: 'Pools of self-hosted workers of the team' });
