/**
 * Tests the end of a worker that was started with the command `worker`. Such a worker leaves its runs to the next worker, finishes the runs
 * or ends the runs. The tests run at the same time, because one test waits for a long run. Each worker has another name, and gets only the
 * runs that name it.
 */
import path from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { runyard, useApart } from './support/apart.ts';
import { runCommand, startCommand } from './support/command-line.ts';
import { giveRuntime } from './support/head-start.ts';
import { processesOf } from './support/processes-of.ts';

const here = useApart();

/** Starts a worker with this name, in a data folder of this name. */
async function startWorker(name: string) {
  const dataDir = path.join(here.folder, name);
  await giveRuntime(dataDir);
  const env = { ...here.client, RUNYARD_DATA_DIR: dataDir, RUNYARD_WORKER_NAME: name };
  const worker = startCommand([runyard, 'worker'], { cwd: here.folder, env });
  await worker.sees('a worker for');
  return { env, worker };
}

/** Starts a run on the worker with this name, waits for its first output, and returns the command that follows the run. */
async function startRun(worker: string) {
  const created = await fetch(`${here.client.RUNYARD_BASE_URL}/api/v1/agent/runs`, {
    method: 'POST',
    headers: { authorization: `Bearer ${here.client.RUNYARD_API_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      prompt: '```sh\necho begun; sleep 50; echo finished\n```',
      config: { worker_host: worker, idle_timeout_minutes: 0 },
    }),
  });
  const { run_id: runId } = (await created.json()) as { run_id: string };
  const follow = startCommand([runyard, 'logs', runId, '--follow'], { cwd: here.folder, env: here.client });
  await follow.sees('│ begun');
  return follow;
}

describe.concurrent('a worker that was started alone', () => {
  test('leaves its current run to the next worker at SIGTERM', async () => {
    const env = { ...here.client, RUNYARD_DATA_DIR: path.join(here.folder, 'worker') };
    const running = startCommand([runyard, 'run', '-'], {
      cwd: here.folder,
      env: here.client,
      input: '```sh\necho begun; sleep 8; echo finished\n```',
    });
    await running.sees('│ begun');
    here.worker.child.kill('SIGTERM');
    await here.worker.sees('leaving the runs to the next worker');
    expect(await here.worker.exited).toBe(0);
    const next = startCommand([runyard, 'worker'], { cwd: here.folder, env });
    await next.sees('a worker for');
    expect(await running.exited).toBe(0);
    expect(running.output()).toContain('│ finished');
    next.child.kill('SIGINT');
    expect(await next.exited).toBe(0);
    await vi.waitFor(() => expect(processesOf(path.join(here.folder, 'worker'))).toEqual([]), { timeout: 60_000 });
  });

  test('finishes its current runs before it ends at `down`, because `down` waits longer for a worker than for other programs', {
    tags: 'long',
    timeout: 180_000,
  }, async () => {
    const { env, worker } = await startWorker('drained');
    const follow = await startRun('drained');
    const stopped = await runCommand([runyard, 'down'], { cwd: here.folder, env });
    expect(stopped.output).toContain('the worker finishes its current runs');
    expect(stopped.code).toBe(0);
    expect(await worker.exited).toBe(0);
    await follow.exited;
    expect(follow.output()).toContain('│ finished');
  });

  test('ends its current runs and itself at `down --force`', { tags: 'long' }, async () => {
    const { env, worker } = await startWorker('ended');
    const follow = await startRun('ended');
    const stopped = await runCommand([runyard, 'down', '--force'], { cwd: here.folder, env });
    expect(stopped).toMatchObject({ code: 0, output: 'stopped\n' });
    expect(await worker.exited).toBe(0);
    await follow.exited;
    expect(follow.output()).not.toContain('│ finished');
    expect(follow.output()).toContain('The worker was stopped while the agent was at work.');
  });
});
