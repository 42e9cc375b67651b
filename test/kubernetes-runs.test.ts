/** Tests runs of a whole system in pods, with the real agent. `test-cluster.ts` chooses a fake or a real cluster. */
import path from 'node:path';
import type { TimelineEvent } from '@runyard/contract/runs/timeline';
import { parseSettings } from '@runyard/contract/settings/settings';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startWorker, type Worker } from '../packages/worker/src/worker.ts';
import { silentLog } from '../packages/worker/test/kubernetes/silent-log.ts';
import {
  isRealCluster,
  type Scenario,
  startTestCluster,
  type TestCluster,
} from '../packages/worker/test/kubernetes/test-cluster.ts';
import { workerEnvironment } from '../packages/worker/test/worker.ts';
import { eventually, type System, sandboxProblem, startSystem } from './support/system.ts';

const problem = process.getuid?.() === 0 ? sandboxProblem : 'only root can start containers of several users';
const name = problem === null ? 'runs in pods' : `runs in pods (skipped: ${problem})`;
const limitMs = 300_000;

describe.skipIf(problem !== null)(name, () => {
  let cluster: TestCluster;
  let scenario: Scenario;
  let system: System;
  let worker: Worker;

  beforeAll(async () => {
    const agent = path.resolve(import.meta.dirname, '../packages/agent/src/main.ts');
    // Start the system only when the cluster has started. Both starts bundle programs with one shared bundler, and the start that ends
    // first stops this bundler.
    cluster = await startTestCluster(agent);
    system = await startSystem({ workers: [] });
    scenario = await cluster.begin('runs');
    const parsed = parseSettings(
      workerEnvironment({ url: system.baseUrl() }, path.join(system.dataDir, 'in-cluster'), {
        RUNYARD_API_KEY: system.key,
        RUNYARD_SANDBOX: 'kubernetes',
        RUNYARD_KUBERNETES_CONFIG: scenario.config,
        RUNYARD_KUBERNETES_AGENT_IMAGE: 'ghcr.io/test/agent:1',
        RUNYARD_KUBERNETES_SERVICE_URL: await cluster.reach(system.baseUrl()),
        RUNYARD_SANDBOX_MEMORY_MB: '512',
      }),
    );
    if (!parsed.ok) throw new Error(parsed.problems.join('; '));
    worker = await startWorker(parsed.settings, { log: silentLog });
  }, limitMs);
  afterAll(async () => {
    await worker?.stop();
    await system?.stop();
    await scenario?.[Symbol.asyncDispose]();
    await cluster?.[Symbol.asyncDispose]();
  }, limitMs);

  const sh = (command: string): string => `\`\`\`sh\n${command}\n\`\`\``;

  test('a run succeeds, can report a file, and cannot read its own run token', async () => {
    // With -q, grep succeeds at the first match, whatever it cannot read.
    const search = "grep -rqsE 'ryr_[0-9A-Za-z]{20}'";
    // A run fails at the first command that fails.
    const commands = [
      'echo made > made.txt && report-artifact made.txt',
      'test "$(id -un)" = agent',
      // The search finds a token that it can read.
      `printf 'ryr_%s' 0123456789abcdefghijABCD > /tmp/planted && ${search} /tmp && rm /tmp/planted`,
      `! ${search} /run /tmp /agent/start.mjs /proc/[0-9]*/environ`,
      '! cat /agent/node > /dev/null',
      '! touch /agent/x',
    ];
    const runId = await system.createRun(commands.map(sh).join('\n\n'));
    const run = await system.untilEnded(runId, 120_000);
    const conversation = JSON.stringify(await system.call('GET', `/agent/runs/${runId}/conversation`));
    expect(run, `${JSON.stringify(run.status_message)} ${conversation}`).toMatchObject({ state: 'SUCCEEDED' });
    expect(JSON.stringify(run)).toContain('made.txt');
  });

  test('the timeline of a run names the backend kubernetes, and the run can be cancelled', async () => {
    const runId = await system.createRun(sh('sleep 300'));
    const timeline = async () => JSON.stringify(await system.call('GET', `/agent/runs/${runId}/timeline`));
    await eventually('the backend in the timeline', async () => (await timeline()).includes('kubernetes'), 120_000);
    await system.call('POST', `/agent/runs/${runId}/cancel`, {});
    expect(await system.untilEnded(runId, 120_000)).toMatchObject({ state: 'CANCELLED' });
  });

  test.skipIf(!isRealCluster)(
    'a service from an image is ready before the agent, which reaches it, and its output is in the timeline',
    { timeout: limitMs, tags: 'compiled' },
    async () => {
      const serve = 'printf %s answered > /tmp/answer; echo serving; exec nc -ll -p 8088 -e cat /tmp/answer';
      const service = { name: 'web', image: 'debian:12', port: 8088, command: `sh -c "${serve}"` };
      const config = { name: 'With a service', services: [service] };
      const { uid } = await system.call<{ uid: string }>('POST', '/agent/environments', { config }, 201);
      const prompt = sh('test "$(nc 127.0.0.1 8088 </dev/null)" = answered && ! ls /tmp/answer');
      const runId = await system.createRun(prompt, { config: { environment_id: uid } });
      const run = await system.untilEnded(runId, limitMs);
      const timeline = JSON.stringify(await system.call('GET', `/agent/runs/${runId}/timeline`));
      const conversation = JSON.stringify(await system.call('GET', `/agent/runs/${runId}/conversation`).catch(String));
      expect(run, `${timeline} ${conversation}`).toMatchObject({ state: 'SUCCEEDED' });
      expect(timeline).toContain('serving');
    },
  );

  test.skipIf(!isRealCluster)(
    'a run on a lost node ends, or resumes when the node is back',
    { timeout: 2 * limitMs, tags: 'compiled' },
    async () => {
      const isAtWork = async (runId: string, execution: number) => {
        const { events } = await system.call<{ events: TimelineEvent[] }>('GET', `/agent/runs/${runId}/timeline`);
        return events.some((event) => event.event_type === 'agent_started' && event.execution_id === execution);
      };
      const begin = async (config: object) => {
        const runId = await system.createRun(sh('sleep 600'), { config });
        await eventually('the start of the agent', () => isAtWork(runId, 1), 120_000);
        return runId;
      };
      const ending = await begin({});
      const resuming = await begin({ on_worker_loss: 'resume' });
      await cluster.loseNode();
      const ended = await system.untilEnded(ending, limitMs);
      expect(ended).toMatchObject({ state: 'ERROR', status_message: { message: expect.stringContaining('node-1') } });
      await cluster.returnNode();
      await eventually('the second start of the agent', () => isAtWork(resuming, 2), limitMs);
      await system.call('POST', `/agent/runs/${resuming}/cancel`, {});
      expect(await system.untilEnded(resuming, 120_000)).toMatchObject({ state: 'CANCELLED' });
    },
  );
});
