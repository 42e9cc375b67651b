/**
 * While many runs are in progress, kills agents, worker and service with SIGKILL at random moments, and stops worker or service for a
 * moment. No run may be lost or executed twice, and no agent may be left at the end. The seed differs each time.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { RunItem } from '@runyard/contract/runs/runs';
import { expect, test } from 'vitest';
import { describeFailures } from './chaos/failures.ts';
import { agentProcesses, doubleRuns } from './support/agents-at-work.ts';
import { describeSystem } from './support/describe-system.ts';
import { isLong } from './support/long.ts';
import { randomOf } from './support/random-of.ts';
import { eventually, killHard } from './support/system.ts';

const runCount = isLong ? 100 : 12;
const kills = isLong ? 20 : 5;
/** Longest time, in milliseconds, between SIGSTOP and SIGCONT to a program. */
const stallMs = Number(process.env.CHAOS_STALL_MS ?? 2000);
/**
 * Pause between two searches for a run with two sandboxes. It is short enough, because a second sandbox needs several times as long to
 * start its agent. A shorter pause would take processor time from the programs.
 */
const watchPauseMs = 100;
const seed = Number(process.env.CHAOS_SEED ?? Date.now() % 100_000);

test('the report of bin/chaos shows at most 20 failed runs and at most 300 characters of each message', () => {
  const failed = { state: 'ERROR', code: 'agent_process_failed', message: `a \`b\`\n${'c'.repeat(400)}` };
  const lines = describeFailures(
    Array.from({ length: 25 }, (_, index) => ({ id: `${index}`, ...failed })),
    25,
  );
  expect(lines).toHaveLength(21);
  expect(lines[0]).toBe(`- ERROR agent_process_failed, run 0: \`a 'b' ${'c'.repeat(293)}…\``);
  expect(lines[20]).toBe('- and 5 more');
  const silent = { id: 'x', state: 'FAILED', code: null, message: null };
  expect(describeFailures([silent], 1)).toEqual(['- FAILED, run x: `no message`']);
});

describeSystem(
  'chaos',
  {
    env: {
      RUNYARD_LEASE_SECONDS: '12',
      RUNYARD_RECONNECT_GRACE_SECONDS: '5',
      RUNYARD_CLAIM_TIMEOUT_SECONDS: '5',
      RUNYARD_WORKER_SLOTS: '6',
    },
  },
  (system) => {
    test(
      `${runCount} runs end once each while agents, worker and service are killed with SIGKILL (seed ${seed})`,
      async () => {
        const random = randomOf(seed);
        const prompt = (n: number) =>
          `\`\`\`sh\necho one ${n}; sleep ${(0.1 + random() * 0.6).toFixed(2)}; echo two\n\`\`\`\n\`\`\`sh\necho three\n\`\`\``;
        const acknowledged: string[] = [];
        for (let n = 0; n < runCount; n += 1) acknowledged.push(await system.createRun(prompt(n)));
        const runIds = new Set(acknowledged);
        const isOurs = (runId: string) => runIds.has(runId);

        let watching = true;
        const doubles: string[] = [];
        const watch = (async () => {
          while (watching) {
            doubles.push(...doubleRuns(isOurs));
            await delay(watchPauseMs);
          }
        })();

        const killed: Record<string, number> = { agent: 0, worker: 0, service: 0, stalled: 0 };
        for (let n = 0; n < kills; n += 1) {
          await delay(100 + random() * 900);
          const choice = random();
          if (choice < 0.35) {
            const agents = agentProcesses(isOurs);
            const victim = agents[Math.floor(random() * agents.length)];
            if (!victim) continue;
            killed.agent = (killed.agent ?? 0) + 1;
            try {
              process.kill(victim.pid, 'SIGKILL');
            } catch {
              // The agent ended just before the signal.
            }
          } else if (choice < 0.6) {
            killed.worker = (killed.worker ?? 0) + 1;
            await killHard(system.worker());
            system.startWorker();
          } else if (choice < 0.75) {
            killed.stalled = (killed.stalled ?? 0) + 1;
            const program = random() < 0.5 ? system.worker() : system.service();
            program.kill('SIGSTOP');
            await delay(random() * stallMs);
            program.kill('SIGCONT');
          } else {
            killed.service = (killed.service ?? 0) + 1;
            await killHard(system.service());
            await system.startService();
          }
        }

        // Wait for one run after another, because concurrent waits would send hundreds of requests each second.
        const ended: RunItem[] = [];
        for (const runId of acknowledged) ended.push(await system.untilEnded(runId, 120_000));
        watching = false;
        await watch;

        const count = (state: string) => ended.filter((run) => run.state === state).length;
        process.stdout.write(
          `chaos seed ${seed}: killed ${JSON.stringify(killed)}; SUCCEEDED ${count('SUCCEEDED')}, ERROR ${count('ERROR')}\n`,
        );
        expect(doubles, 'runs that ran twice at the same time').toEqual([]);
        for (const run of ended) {
          expect(['SUCCEEDED', 'ERROR'], JSON.stringify(run.status_message)).toContain(run.state);
          if (run.state === 'ERROR') expect(run.status_message?.error_code).toBe('agent_process_failed');
          const { events } = await system.call<{ events: { event_type: string }[] }>(
            'GET',
            `/agent/runs/${run.run_id}/timeline`,
          );
          const ends = events.filter((event) => ['oz_run_done', 'oz_run_errored'].includes(event.event_type));
          expect(ends, 'exactly one terminal event').toHaveLength(1);
          if (run.state === 'SUCCEEDED') {
            const conversation = JSON.stringify(await system.call('GET', `/agent/runs/${run.run_id}/conversation`));
            expect(conversation, 'no acknowledged event was lost').toContain('three');
          }
        }
        expect(count('SUCCEEDED'), 'most runs get through').toBeGreaterThan(runCount / 3);
        await eventually('end of the last sandbox process', async () => agentProcesses(isOurs).length === 0);
      },
      20_000 * Math.max(15, runCount),
    );
  },
);
