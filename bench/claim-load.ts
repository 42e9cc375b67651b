/** Executions that wait for workers, and fake workers that claim them. */
import { once } from 'node:events';
import type { ServiceMessage } from '@runyard/contract/workers/worker-protocol';
import { WebSocket } from 'ws';
import type { Database } from '../packages/service/src/platform/store/database/database.ts';
import { copyRuns } from './copied-runs.ts';

/** Larger than every number of executions that a benchmark claims, so that no limit of teams or workers stops an assignment. */
const manySlots = 1_000_000;

/** Removes the limits of the team `first`, creates teams without limits until there are `count` teams, and returns the ids of all. */
export async function createTeams(db: Database, first: string, count: number): Promise<string[]> {
  await db.query('UPDATE teams SET max_concurrent_executions = $1', [manySlots]);
  const others = await db.query<{ id: string }>(
    `INSERT INTO teams (id, uid, name, max_concurrent_executions)
     SELECT new_uuid_v7(), left(md5(n::text), 22), 'Team ' || n, $2 FROM generate_series(2, $1::int) n RETURNING id`,
    [count, manySlots],
  );
  return [first, ...others.map(({ id }) => id)];
}

/**
 * Adds `count` waiting copies of the run to the queue of the hosted workers. Each team gets the same number. Takes all other executions
 * out of this queue; their runs stay QUEUED.
 */
export async function fillQueue(db: Database, runId: string, teams: readonly string[], count: number): Promise<void> {
  await db.query(`UPDATE executions SET pool = 'parked' WHERE phase = 'queued' AND pool = ''`);
  await copyRuns(db, runId, { count, state: 'QUEUED', phase: 'queued', teams, pools: [''] });
  await db.onOwnConnection((client) => client.query('VACUUM ANALYZE runs, executions, teams'));
}

/** Deletes the claimed executions and their runs. */
export async function removeClaimed(db: Database): Promise<void> {
  await db.query(
    `WITH claimed AS (DELETE FROM executions WHERE phase <> 'queued' RETURNING run_id)
     DELETE FROM runs WHERE id IN (SELECT run_id FROM claimed)`,
  );
}

/**
 * Connects a fake worker to each service. Each worker claims each execution that it gets. Resolves when the services have committed
 * `count` claims.
 */
export async function claimAll(origins: readonly string[], key: string, count: number): Promise<void> {
  const sockets: WebSocket[] = [];
  const counts = origins.map(() => 0);
  try {
    await new Promise<void>((resolve, reject) => {
      for (const [index, origin] of origins.entries()) {
        const socket = openWorker(origin, key, `runyard-bench-${index}`, (claims) => {
          counts[index] = claims;
          if (counts.reduce((sum, each) => sum + each, 0) >= count) resolve();
        });
        socket.once('error', reject);
        socket.once('close', () => reject(new Error('a service closed the connection of a worker')));
        sockets.push(socket);
      }
    });
  } finally {
    await Promise.all(
      sockets.map(async (socket) => {
        if (socket.readyState === WebSocket.CLOSED) return;
        socket.close();
        await once(socket, 'close');
      }),
    );
  }
}

/** Connects one worker. Calls `onClaims` with the number of its claims each time that the service has committed some of them. */
function openWorker(origin: string, key: string, name: string, onClaims: (claims: number) => void): WebSocket {
  const socket = new WebSocket(`${origin.replace('http', 'ws')}/api/v1/selfhosted/worker/ws?worker_id=${name}`, {
    headers: { authorization: `Bearer ${key}` },
  });
  const say = (message: object) => socket.send(JSON.stringify(message));
  let seq = 0;
  socket.on('open', () => {
    const sandbox = { backend: 'none', features: [], missing: [] };
    const hello = { worker_id: name, instance_id: name, slots: manySlots, executions: [], sandbox, draining: false };
    say({ type: 'worker_hello', data: hello });
  });
  socket.on('message', (text) => {
    const { type, data } = JSON.parse(String(text)) as ServiceMessage;
    if (type === 'messages_applied') onClaims(data.seq);
    if (type !== 'task_assignment') return;
    const { task_id, execution_id } = data;
    seq += 1;
    say({ type: 'task_claimed', seq, data: { task_id, execution_id, worker_id: name } });
  });
  return socket;
}
