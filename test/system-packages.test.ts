/**
 * Tests sandboxes with their own Debian: setup commands install packages of Debian, and later runs have them. The tests use the package
 * mirror of the machine.
 */
import { lookup } from 'node:dns/promises';
import type { TimelineEvent } from '@runyard/contract/runs/timeline';
import { describe, expect, test } from 'vitest';
import { describeSystem } from './support/describe-system.ts';
import { eventually, type System } from './support/system.ts';

const longMs = 900_000;

async function runIn(system: System, environment_id: string, script: string) {
  const runId = await system.createRun(`\`\`\`sh\n${script}\n\`\`\``, { config: { environment_id } });
  const run = await system.untilEnded(runId, longMs);
  const { events } = await system.call<{ events: TimelineEvent[] }>('GET', `/agent/runs/${runId}/timeline`);
  const steps = events.filter(({ event_type }) => event_type === 'setup_step_finished').map(({ payload }) => payload);
  const conversation = await system.call('GET', `/agent/runs/${runId}/conversation`).catch(String);
  return {
    runId,
    state: run.state,
    message: JSON.stringify([run.status_message, steps]),
    steps,
    output: JSON.stringify(conversation),
  };
}

const lastStep = ({ steps }: Awaited<ReturnType<typeof runIn>>): unknown => steps.at(-1)?.name;

const install = 'sudo apt-get update && sudo apt-get install -y postgresql redis-server openjdk-17-jdk-headless';
/** Starts the installed programs, as a run would. */
const use = [
  'id -un; echo "class A { public static void main(String[] a) { System.out.println(\\"java\\" + \\" works\\"); } }" > A.java; java A.java',
  'redis-server --port 6399 --save "" > redis.log & until redis-cli -p 6399 ping 2> /dev/null; do sleep 0.1; done',
  'pg_ctlcluster 15 main start -o "-c unix_socket_directories=/tmp" || cat /var/log/postgresql/*',
  'until pg_isready -h /tmp; do sleep 0.1; done; pg_ctlcluster 15 main stop -m immediate; redis-cli -p 6399 shutdown',
].join('\n');

/** On some machines the package mirror has a private address. */
const mirrors = await lookup('deb.debian.org', { all: true }).catch(() => []);
const env = {
  RUNYARD_EGRESS_PRIVATE_NETWORKS: mirrors.map(({ address, family }) => `${address}/${family === 4 ? 32 : 128}`).join(),
};
const cases = { root: { env }, 'a plain user': { env, workerUser: 65534 } } as const;

describe.runIf(process.getuid?.() === 0)('setup commands install packages of Debian', () => {
  for (const [name, options] of Object.entries(cases))
    describeSystem(`with a worker of ${name}`, options, (system) => {
      test(
        'PostgreSQL, Redis and Java work, also in a later run, which installs nothing',
        async () => {
          const config = {
            name: 'Packages',
            system: 'debian',
            setup_commands: [install],
            network: { presets: ['apt'] },
          };
          const { uid } = await system.call<{ uid: string }>('POST', '/agent/environments', { config }, 201);
          const first = await runIn(system, uid, use);
          expect(first, `${first.message}\n${first.output}\n${await system.logs()}`).toMatchObject({
            state: 'SUCCEEDED',
          });
          expect(lastStep(first)).toBe('kept for later runs in this environment');
          const second = await runIn(system, uid, `${use}\nsudo rm -rf /usr/share/doc && echo changed`);
          for (const { output } of [first, second])
            for (const text of ['java works', 'PONG', 'accepting connections', 'agent\\n'])
              expect(output, output).toContain(text);
          expect(second.steps).toHaveLength(1);
          expect(lastStep(second)).toMatch(/^reused as an earlier run prepared it/);
          const third = await runIn(system, uid, 'ls -d /usr/share/doc; java -version; echo of-the-first-turn > kept');
          expect(third, third.output).toMatchObject({ state: 'SUCCEEDED' });
          // The sandbox of the third run has ended, so its follow-up gets a new one, with the files of the earlier one.
          const message = '```sh\njava -version 2> /dev/null && cat kept && echo java-is-there\n```';
          await system.call('POST', `/agent/runs/${third.runId}/followups`, { message });
          const hasBoth = async () => {
            const conversation = await system.call('GET', `/agent/runs/${third.runId}/conversation`);
            return JSON.stringify(conversation).includes('of-the-first-turn\\njava-is-there');
          };
          await eventually('the turn with the files and the packages', hasBoth, longMs);
        },
        longMs,
      );
    });
});
