/**
 * Tests sandboxes that outlive their worker. The next worker of the same data folder adopts these sandboxes, and reports what happened
 * in them while no worker ran.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from 'vitest';
import { describeSystem } from './support/describe-system.ts';
import { killWorkers } from './support/killed-workers.ts';
import { runOfAgent } from './support/run-of-agent.ts';
import { supervisorOf } from './support/supervisor-of.ts';
import { eventually, killHard } from './support/system.ts';

/** A sandbox without a worker ends after this time. Even on a busy machine, the next worker starts within this time. */
const adoptSeconds = 30;

/** Prompt of a run that creates the file `begun-NAME` and then waits until the test creates the file `go`. */
const prompt = (name: string): string => `Wait, then make something.

\`\`\`sh
echo begun ${name}; touch begun-${name}; while ! [ -e go ]; do sleep 0.05; done; echo going on
\`\`\`

\`\`\`sh
printf made > made.txt && report-artifact made.txt --title Result; echo finished
\`\`\`
`;

/** Returns the processes with an argument that contains the text. */
const processesWith = (text: string): { pid: number; args: string[] }[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const args = readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0');
        return args.some((arg) => arg.includes(text)) ? [{ pid: Number(name), args }] : [];
      } catch {
        // The process ended while this function read the arguments.
        return [];
      }
    });

describeSystem('adoption', { env: { RUNYARD_ADOPT_SECONDS: String(adoptSeconds) } }, (system) => {
  /** Starts a run and waits until the agent is in the middle of a turn. Returns the run and its sandbox. */
  const begin = async (name: string): Promise<{ runId: string; sandbox: string; workspace: string }> => {
    const runId = await system.createRun(prompt(name));
    const line = (await system.logs()).split('\n').find((text) => text.includes('"sandboxes live here"')) ?? '';
    const all = path.join(JSON.parse(line).folder, 's');
    const sandbox = await eventually(`begin of ${name}`, async () => {
      for (const id of await readdir(all))
        if (
          (await readdir(path.join(all, id, 'workspace')).catch(() => [])).some(
            (file) => String(file) === `begun-${name}`,
          )
        )
          return id;
      return null;
    });
    return { runId, sandbox, workspace: path.join(all, sandbox, 'workspace') };
  };
  /** Returns the process that supervises a sandbox. */
  const supervisorAt = ({ sandbox, workspace }: { sandbox: string; workspace: string }) =>
    supervisorOf(path.resolve(workspace, '../../..'), sandbox);
  const goOn = (workspace: string) => writeFile(path.join(workspace, 'go'), '');
  const agentOf = (runId: string) => processesWith(runId).find(({ args }) => runOfAgent(args.join('\0')) === runId);
  const isGone = (sandbox: string) =>
    eventually(`end of sandbox ${sandbox}`, async () => processesWith(`:${sandbox}`).length === 0);
  const endedWell = async (runId: string) => {
    const run = await system.untilEnded(runId);
    expect(run, JSON.stringify(run.status_message)).toMatchObject({ state: 'SUCCEEDED' });
    expect(run.artifacts?.map(({ data }) => data)).toEqual([expect.objectContaining({ filename: 'made.txt' })]);
    const conversation = JSON.stringify(await system.call('GET', `/agent/runs/${runId}/conversation`));
    for (const text of ['begun', 'going on', 'finished']) expect(conversation).toContain(text);
    const { events } = await system.call<{ events: { event_type: string }[] }>('GET', `/agent/runs/${runId}/timeline`);
    const types = events.map((event) => event.event_type);
    for (const type of ['oz_run_claimed', 'worker_container_ready', 'agent_started', 'oz_run_done'])
      expect(
        types.filter((each) => each === type),
        type,
      ).toHaveLength(1);
  };

  test.each(['SIGKILL', 'SIGTERM'] as const)(
    'runs continue their turns when %s ends their worker and the worker is started again',
    async (signal) => {
      const both = [await begin(`${signal}-one`), await begin(`${signal}-two`)];
      const supervisors = new Set(await Promise.all(both.map(supervisorAt)));
      expect(supervisors.size, 'they have one supervisor').toBe(1);
      const agents = both.map(({ runId }) => agentOf(runId));
      const ended = new Promise((resolve) => system.worker().once('exit', resolve));
      system.worker().kill(signal);
      // The worker must exit at SIGTERM although both runs are in progress: they wait until the test creates the file `go`.
      await ended;
      const reason = await eventually('the worker is gone', async () => {
        const { gone_workers: gone } = await system.call<{ gone_workers: { reason: string }[] }>(
          'GET',
          '/installation',
        );
        return gone[0]?.reason ?? null;
      });
      expect(reason).toBe(signal === 'SIGTERM' ? 'stopped' : 'lost');
      system.startWorker();
      await eventually(
        'adoption',
        async () => (await system.logs()).split('"adopted the sandboxes').length > (signal === 'SIGKILL' ? 1 : 2),
      );
      for (const [index, { runId, sandbox, workspace }] of both.entries()) {
        expect(agentOf(runId), 'the same agent').toEqual(agents[index]);
        await goOn(workspace);
        await endedWell(runId);
        await isGone(sandbox);
      }
    },
  );

  test('the service receives all reports of a run that ends while no worker runs', async () => {
    const { runId, sandbox, workspace } = await begin('away');
    await killHard(system.worker());
    await goOn(workspace);
    await endedWell(runId);
    await isGone(sandbox);
    system.startWorker();
  });

  test('after a restart, the worker reports by which signal an agent was killed while no worker ran', async () => {
    const { runId, sandbox } = await begin('crash');
    await killHard(system.worker());
    process.kill(agentOf(runId)?.pid ?? expect.fail('no agent'), 'SIGSEGV');
    await isGone(sandbox);
    expect((await system.run(runId)).state).toBe('INPROGRESS');
    system.startWorker();
    const { state, status_message } = await system.untilEnded(runId);
    expect({ state, status_message }).toMatchObject({
      state: 'ERROR',
      status_message: { error_code: 'agent_process_failed', message: expect.stringContaining('ended by signal 11') },
    });
  });

  test('a run ends with all of its processes when the supervisor of its sandbox is killed', async () => {
    const both = [await begin('supervisor'), await begin('beside')];
    const [supervisor, ...others] = new Set(await Promise.all(both.map(supervisorAt)));
    expect(others).toEqual([]);
    process.kill(supervisor ?? expect.fail('no supervisor'), 'SIGKILL');
    for (const { runId, sandbox } of both) {
      const { state, status_message } = await system.untilEnded(runId);
      expect({ state, status_message }).toMatchObject({
        state: 'ERROR',
        status_message: {
          error_code: 'agent_process_failed',
          message: expect.stringContaining('supervised the sandbox'),
        },
      });
      await isGone(sandbox);
      expect(agentOf(runId)).toBeUndefined();
    }
  });

  test('a sandbox that no worker adopts in time ends, and the error of its run names this reason', async () => {
    const { runId, sandbox } = await begin('late');
    await killHard(system.worker());
    const began = performance.now();
    await isGone(sandbox);
    expect(performance.now() - began).toBeGreaterThan((adoptSeconds - 1) * 1000);
    system.startWorker();
    const { state, status_message } = await system.untilEnded(runId);
    expect({ state, status_message }).toMatchObject({
      state: 'ERROR',
      status_message: { error_code: 'agent_process_failed', message: expect.stringContaining('RUNYARD_ADOPT_SECONDS') },
    });
  });

  test('programs in a sandbox cannot see the supervisors or their folder', async () => {
    const { runId: other, workspace } = await begin('watched');
    const folder = path.resolve(workspace, '../../../v');
    expect((await readdir(folder)).length, 'they are there').toBeGreaterThan(0);
    expect(processesWith('runyard-supervisor:').length).toBeGreaterThan(0);
    const attempts = [
      `! ls ${folder}`,
      `! ls ${system.dataDir}`,
      "! grep -a 'runyard-supervisor' /proc/[0-9]*/cmdline | grep -av grep",
      `! grep -a '/v/' /proc/net/unix`,
      '[ "$(ls /run/runyard)" = relay.sock ]',
      // If the supervisors' folder is below /tmp, this command can succeed: it makes a folder in the sandbox's own /tmp.
      `mkdir -p ${folder}/forged || true`,
    ];
    const runId = await system.createRun(attempts.map((line) => `\`\`\`sh\n${line}\n\`\`\``).join('\n\n'));
    const run = await system.untilEnded(runId);
    expect(run.state, JSON.stringify(run.status_message)).toBe('SUCCEEDED');
    expect(await readdir(folder)).not.toContain('forged');
    await goOn(workspace);
    await endedWell(other);
  });

  /** Only `bin/test-long` runs this test, because `chaos.test.ts` and `killed-parents.test.ts` also kill the worker at random moments. */
  const runs = 20;

  test('the service starts each run once and loses none while the worker is killed often', {
    tags: 'long',
  }, async () => {
    const found = await killWorkers(system, { runs, seconds: 3, everyMs: 2500, mostKills: 3 });
    expect(found).toMatchObject({ states: { SUCCEEDED: runs }, failures: [], twice: [], incomplete: [] });
    expect(found.hit, 'agents at work when the worker was killed').toBeGreaterThan(0);
  });
});
