import { z } from 'zod';
import { maxPoolConnectors } from '../limits.ts';
import { teamReads } from '../wire/access.ts';
import { DeleteResponse } from '../wire/bodies.ts';
import type { Route } from '../wire/route.ts';
import { ListWorkerPoolsResponse, WorkerPool } from './worker-pools.ts';

const pool = z.object({ poolName: z.string().meta({ description: 'Name of the pool' }) });
const connector = pool.extend({
  principalUid: z.string().meta({
    description: 'UID of a person, of an agent identity, or of an agent key that acts as none',
  }),
});
// Agent keys are refused, because a program in a sandbox may have an agent key.
const owners = { user: 'member' } as const;
const notOwner = 'The pool belongs to another person, and you are not an administrator';

export const workerPoolRoutes = {
  listWorkerPools: {
    method: 'GET',
    path: '/worker-pools',
    tag: 'workers',
    summary: 'List the pools of self-hosted workers',
    description:
      "When a worker connects for the first time, the owner of its key becomes the owner of the pool with the worker's name. Other keys connect under that name after its owner or an administrator added them.",
    allow: teamReads,
    answer: { status: 200, description: 'By name', schema: ListWorkerPoolsResponse },
  },
  addWorkerPoolConnector: {
    method: 'PUT',
    path: '/worker-pools/{poolName}/connectors/{principalUid}',
    tag: 'workers',
    summary: 'Let the keys of a person or service account connect to a pool',
    description: 'Workers that connect get the runs of the pool, with their tokens and secrets.',
    allow: owners,
    params: connector,
    answer: { status: 200, description: 'The pool as it is now', schema: WorkerPool },
    errors: {
      403: notOwner,
      404: 'No such pool, or no person or agent with this UID runs workers in the team',
      409: `The pool has ${maxPoolConnectors} connectors`,
    },
  },
  removeWorkerPoolConnector: {
    method: 'DELETE',
    path: '/worker-pools/{poolName}/connectors/{principalUid}',
    tag: 'workers',
    summary: 'End the right of a person or service account to connect to a pool',
    description: 'Connections with its keys end at once.',
    allow: owners,
    params: connector,
    answer: { status: 200, description: 'Removed', schema: DeleteResponse },
    errors: { 403: notOwner, 404: 'No such pool, or it was not added' },
  },
  takeOverWorkerPool: {
    method: 'PUT',
    path: '/worker-pools/{poolName}/owner',
    tag: 'workers',
    summary: 'Take over a pool of self-hosted workers',
    description:
      'The caller becomes the owner of the pool. Connections with keys of the earlier owner end at once, unless the earlier owner is one of its connectors. Personal secrets and credentials of others wait until they accept the pool.',
    allow: { user: 'admin' },
    params: pool,
    answer: { status: 200, description: 'The pool as it is now', schema: WorkerPool },
    errors: { 404: 'No such pool' },
  },
  deleteWorkerPool: {
    method: 'DELETE',
    path: '/worker-pools/{poolName}',
    tag: 'workers',
    summary: 'Delete a pool of self-hosted workers',
    description: 'Its connections end at once. The next connection under the name makes it anew.',
    allow: owners,
    params: pool,
    answer: { status: 200, description: 'Deleted', schema: DeleteResponse },
    errors: { 403: notOwner, 404: 'No such pool' },
  },
} as const satisfies Record<string, Route>;
