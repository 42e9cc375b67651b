/** Tests services of an environment with a real PostgreSQL and a real Redis, in real sandboxes. */
import { once } from 'node:events';
import { connect } from 'node:net';
import type { TimelineEvent } from '@runyard/contract/runs/timeline';
import { expect, test } from 'vitest';
import { gvisorFeatures } from '../packages/worker/test/worker.ts';
import { isOnPath, newestPostgres } from './checks/system-packages.ts';
import { describeSystem } from './support/describe-system.ts';
import { isLong } from './support/long.ts';
import { eventually, type System } from './support/system.ts';

const postgres = newestPostgres();
const problem = postgres === null || !isOnPath('redis-server') ? 'PostgreSQL or Redis is missing' : undefined;
const hasGvisor = (await gvisorFeatures()) !== undefined;

const init = `test -d ~/.cache/pg/base || ${postgres}/initdb -D ~/.cache/pg -A trust -U agent > /dev/null`;
/** The archive of a run omits ~/.cache, and the prepared workspace includes it. So the service makes its files if they are missing. */
const databases = {
  setup_commands: [init],
  services: [
    {
      name: 'postgres',
      command: `${init}; exec ${postgres}/postgres -D ~/.cache/pg -c listen_addresses=127.0.0.1 -k /tmp`,
      ready: `${postgres}/pg_isready -q -h 127.0.0.1`,
      port: 5432,
    },
    {
      name: 'redis',
      command: 'exec redis-server --save "" --port $PORT --dir /tmp',
      port: 6379,
      env: { PORT: '6379' },
    },
  ],
};

/** Returns whether a program of the machine accepts connections on the port. */
async function reaches(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  const isOpen = await once(socket, 'connect').then(
    () => true,
    () => false,
  );
  socket.destroy();
  return isOpen;
}

const look = [`psql -h 127.0.0.1 -U agent -d postgres -Atc "SELECT 'answer ' || 6 * 7"`, 'redis-cli ping'].join('\n');

const environment = async (system: System, config: object): Promise<string> =>
  (await system.call<{ uid: string }>('POST', '/agent/environments', { config: { name: 'S', ...config } }, 201)).uid;

const stepsOf = async (system: System, runId: string) => {
  const { events } = await system.call<{ events: TimelineEvent[] }>('GET', `/agent/runs/${runId}/timeline`);
  return events.flatMap(({ event_type, payload = {} }) => (event_type === 'setup_step_finished' ? [payload] : []));
};

async function runIn(system: System, environment_id: string, script: string) {
  const runId = await system.createRun(`\`\`\`sh\n${script}\n\`\`\``, { config: { environment_id } });
  const run = await system.untilEnded(runId);
  const conversation = JSON.stringify(await system.call('GET', `/agent/runs/${runId}/conversation`).catch(String));
  return { runId, run, conversation, steps: await stepsOf(system, runId) };
}

const kinds = ['bubblewrap', ...(hasGvisor && isLong ? ['gvisor'] : [])];

if (problem !== undefined) test.skip(`services of an environment (skipped: ${problem})`, () => {});
else
  for (const kind of kinds) {
    const options = async () => ({ env: { RUNYARD_SANDBOX: kind } });
    describeSystem(`services in a sandbox of ${kind}`, options, (system) => {
      test('are ready before the agent begins, also with a prepared workspace, and their output is in the timeline', async () => {
        const uid = await environment(system, databases);
        for (const first of ['setup_command', 'workspace']) {
          const { run, conversation, steps } = await runIn(system, uid, look);
          expect(run, conversation + JSON.stringify(steps)).toMatchObject({ state: 'SUCCEEDED' });
          expect(conversation).toContain('answer 42\\nPONG\\n');
          expect(steps[0]).toMatchObject({ kind: first });
          const services = steps.filter(({ kind: each }) => each === 'service');
          expect(services.slice(0, 2)).toMatchObject([{ name: 'postgres' }, { name: 'redis' }]);
          expect(services.map(({ output_tail: tail }) => tail).join('')).toContain('ready to accept connections');
        }
      }, 240_000);

      test('do not start after a setup that left a secret of the setup in a file or in a process', async () => {
        await system.call('PUT', '/secrets/LEFT', { value: 'value-left-by-a-setup-4711', scope: 'team' });
        const config = {
          secrets: [{ name: 'LEFT', phase: 'setup' }],
          services: [{ name: 's', command: 'touch ~/up; exec sleep 600', ready: 'test -e ~/up' }],
        };
        const inFile = await environment(system, { ...config, setup_commands: ['echo "$LEFT" | base64 > /tmp/left'] });
        const { run, steps } = await runIn(system, inFile, 'true');
        expect(run.status_message?.message).toContain('left the secret LEFT in /tmp/left');
        expect(steps.filter(({ kind: each }) => each === 'service')).toEqual([]);
        const command = 'setsid env -i sleep 98762 > /dev/null 2>&1 & setsid sleep 98763 > /dev/null 2>&1 &';
        const inProcess = await environment(system, { ...config, setup_commands: [command] });
        const ended = await runIn(
          system,
          inProcess,
          'cat /proc/[0-9]*/cmdline | tr "\\0" "\\n" | grep -c "9876[23]" || true',
        );
        expect(ended.conversation).toContain('"0\\n"');
      }, 240_000);

      test('start again after a continuation', async () => {
        const uid = await environment(system, databases);
        const first = await runIn(system, uid, 'redis-cli set k v; echo kept > kept');
        expect(first.run, first.conversation).toMatchObject({ state: 'SUCCEEDED' });
        await system.until(first.runId, ({ is_sandbox_running }) => is_sandbox_running === false);
        const message = `\`\`\`sh\ncat kept; redis-cli exists k\n${look}\n\`\`\``;
        await system.call('POST', `/agent/runs/${first.runId}/followups`, { message });
        await eventually('the second execution', async () => {
          const conversation = JSON.stringify(await system.call('GET', `/agent/runs/${first.runId}/conversation`));
          return conversation.includes('kept\\n0\\nanswer 42\\nPONG\\n');
        });
        await system.untilEnded(first.runId);
      }, 240_000);

      test('listen neither on the machine nor in another sandbox, and get no secret and no connection to the agent', async () => {
        await system.call('PUT', '/secrets/OF_SETUP', { value: 'value-of-the-setup-4711', scope: 'team' });
        await system.call('PUT', '/secrets/OF_AGENT', { value: 'value-of-the-agent-4712', scope: 'team' });
        const port = 45_871;
        const server = `require('net').createServer((socket) => socket.end(JSON.stringify(process.env))).listen(${port}, '0.0.0.0')`;
        const uid = await environment(system, {
          setup_commands: ['test -n "$OF_SETUP" && test -n "$OF_AGENT" && echo both'],
          variables: { OF_ENVIRONMENT: 'seen' },
          secrets: [{ name: 'OF_SETUP', phase: 'setup' }, { name: 'OF_AGENT' }],
          services: [{ name: 'server', command: `exec node -e "${server}"`, port, env: { OF_SERVICE: 'seen too' } }],
        });
        const connect = `node -e "require('net').connect(${port}, '127.0.0.1').on('data', (text) => process.stdout.write(text))"`;
        const script = `${connect} > variables; grep -c value-of variables || true; cat variables; touch here; while [ ! -e there ]; do sleep 0.1; done`;
        const runId = await system.createRun(`\`\`\`sh\n${script}\n\`\`\``, { config: { environment_id: uid } });
        const seen = await eventually('the variables of the service', async () => {
          const conversation = JSON.stringify(
            await system.call('GET', `/agent/runs/${runId}/conversation`).catch(() => ''),
          );
          return conversation.includes('OF_SERVICE') && conversation.includes('seen too') && conversation;
        });
        expect(seen).toContain('OF_ENVIRONMENT');
        expect(seen).not.toMatch(/RUNYARD_AGENT_SOCKET|OF_SETUP|OF_AGENT/);
        expect(await reaches(port)).toBe(false);
        const other = await environment(system, { services: [] });
        const elsewhere = await runIn(system, other, `${connect} 2>&1 | grep -o ECONNREFUSED`);
        expect(elsewhere.run, elsewhere.conversation).toMatchObject({ state: 'SUCCEEDED' });
        await system.call('POST', `/agent/runs/${runId}/cancel`);
        await system.until(runId, ({ is_sandbox_running }) => is_sandbox_running === false);
      }, 240_000);
    });
  }
