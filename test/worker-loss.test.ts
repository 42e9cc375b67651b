/**
 * Tests the permanent loss of a machine in the middle of a turn: worker, supervisors and sandboxes of the machine end at
 * once.
 */
import { readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { TimelineEvent } from '@runyard/contract/runs/timeline';
import { expect, test } from 'vitest';
import { describeSystem } from './support/describe-system.ts';
import { supervisorOf } from './support/supervisor-of.ts';
import { eventually, killHard } from './support/system.ts';

/** Three commands. The second one waits until the test lets it continue. */
const prompt = (name: string): string =>
  [
    'echo one >> done',
    `touch begun-${name}; while ! [ -e go ]; do sleep 0.05; done; echo two >> done`,
    'cat done; echo finished',
  ]
    .map((script) => `\`\`\`sh\n${script}\n\`\`\``)
    .join('\n\n');

describeSystem('a lost machine', { env: { RUNYARD_CHECKPOINT_SECONDS: '1' } }, (system) => {
  const folder = async () => {
    const line = (await system.logs()).split('\n').find((text) => text.includes('"sandboxes live here"')) ?? '';
    return String(JSON.parse(line).folder);
  };
  /** Waits for a sandbox whose workspace contains the file and that is not one of `others`. Returns the id of the sandbox. */
  const sandboxWith = async (file: string, others: readonly string[] = []): Promise<string> => {
    const state = await folder();
    const all = path.join(state, 's');
    return await eventually(`sandbox with ${file}`, async () => {
      for (const id of await readdir(all)) {
        const files = await readdir(path.join(all, id, 'workspace')).catch(() => []);
        if (!others.includes(id) && files.map(String).includes(file) && (await supervisorOf(state, id)) !== undefined)
          return id;
      }
      return null;
    });
  };
  const archives = async () => {
    const files = await readdir(path.join(system.dataDir, 'blobs/objects'), { recursive: true });
    return files.filter((name) => path.basename(name).startsWith('workspaces+')).length;
  };
  const conversation = async (runId: string) =>
    JSON.stringify(await system.call('GET', `/agent/runs/${runId}/conversation`));

  test('a run with on_worker_loss=resume continues its turn with its files and its conversation, and other runs end in ERROR', async () => {
    const runId = await system.createRun(prompt('first'), { config: { on_worker_loss: 'resume' } });
    const other = await system.createRun(prompt('other'));
    const sandboxes = [await sandboxWith('begun-first'), await sandboxWith('begun-other')];
    await eventually('a checkpoint', async () => (await archives()) > 0);

    await killHard(system.worker());
    // Collect the process ids in a set, because one supervisor may supervise both sandboxes.
    const supervisors = new Set<number>();
    for (const sandbox of sandboxes)
      supervisors.add((await supervisorOf(await folder(), sandbox)) ?? expect.fail('no supervisor'));
    for (const pid of supervisors) process.kill(pid, 'SIGKILL');
    expect((await system.run(runId)).state).toBe('INPROGRESS');

    // Start a new worker on the same data folder. It reports at once that the sandboxes have ended, so the test need not wait for the
    // end of the lease.
    system.startWorker();
    const failed = await system.untilEnded(other);
    expect(failed).toMatchObject({ state: 'ERROR', status_message: { error_code: 'agent_process_failed' } });

    const resumed = await sandboxWith('begun-first', sandboxes);
    await writeFile(path.join(await folder(), 's', resumed, 'workspace/go'), '');
    const run = await system.untilEnded(runId);
    expect(run, JSON.stringify(run.status_message)).toMatchObject({ state: 'SUCCEEDED' });
    const text = await conversation(runId);
    for (const part of ['machine_lost', 'The first 1 of 3 commands', 'one\\\\ntwo\\\\nfinished'])
      expect(text).toContain(part.replaceAll('\\\\', '\\'));
    const { events } = await system.call<{ events: TimelineEvent[] }>('GET', `/agent/runs/${runId}/timeline`);
    const shown = events.filter(({ event_type }) =>
      /agent_started|vm_shutdown|execution_resumed|done/.test(event_type),
    );
    expect(shown.map(({ event_type, execution_id }) => `${execution_id} ${event_type}`).slice(0, 5)).toEqual([
      '1 agent_started',
      '1 execution_resumed',
      '1 vm_shutdown',
      '2 agent_started',
      '2 oz_run_done',
    ]);
  });
});
