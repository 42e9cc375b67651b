/**
 * Measures how long it takes to load a module at the agent's start. Each module is bundled like the agent, and loaded in a separate
 * process with compiled code from an earlier start.
 */
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { bundleProgram, keepCodeVariable, writeBundle } from '../packages/worker/src/runtime/bundle.ts';
import { run } from './programs.ts';
import { percentile, report } from './report.ts';
import { inTurns } from './turns.ts';

const rounds = Number(process.env.BENCH_ROUNDS ?? 25);
const builtin = (name: string) => `process.getBuiltinModule('${name}')`;
const load = (name: string) => `await import('${name}')`;

/**
 * Code that connects a client and an agent of the ACP SDK in one process, by streams in memory, and waits for the answer to `initialize`.
 */
const handshake = `
const { agent, client } = await import('@agentclientprotocol/sdk');
const [toAgent, toClient] = [new TransformStream(), new TransformStream()];
agent({ name: 'a' }).onRequest('initialize', () => ({ protocolVersion: 1 }))
  .connect({ readable: toAgent.readable, writable: toClient.writable });
const { agent: other } = client({ name: 'c' }).connect({ readable: toClient.readable, writable: toAgent.writable });
await other.request('initialize', { protocolVersion: 1, clientCapabilities: {} })`;

/** The code to measure, by the name of its row in the table. */
const cases: Readonly<Record<string, string>> = {
  nothing: '',
  '`node:http`, by `import`': load('node:http'),
  '`node:http`, by `getBuiltinModule`': builtin('node:http'),
  '`node:fs`, by `import`': load('node:fs'),
  '`node:fs`, by `getBuiltinModule`': builtin('node:fs'),
  '`node:crypto`': builtin('node:crypto'),
  zod: load('zod'),
  'the ACP SDK': load('@agentclientprotocol/sdk'),
  'the ACP SDK, and its first handshake with itself': handshake,
  'the AI SDK': load('./ai.ts'),
  ...Object.fromEntries(
    ['anthropic', 'openai', 'google', 'openai-compatible'].map((name) => [
      `\`@ai-sdk/${name}\``,
      load(`@ai-sdk/${name}`),
    ]),
  ),
};

const folder = await mkdtemp(path.join(tmpdir(), 'runyard-bench-modules-'));

/** Bundles the code. Returns a function that runs the bundle in a new process and returns the milliseconds that it took. */
async function prepare(code: string, place: string): Promise<() => Promise<{ wall: number; cpu: number }>> {
  await mkdir(place);
  const entry = path.join(place, 'main.ts');
  await writeFile(path.join(place, 'ai.ts'), `export { jsonSchema, streamText, tool } from 'ai';`);
  await writeFile(
    entry,
    `performance.now(), process.cpuUsage(); // Loaded by their first use.
void (async () => {
const [wall, cpu] = [performance.now(), process.cpuUsage()];
${code};
const [end, used] = [performance.now(), process.cpuUsage(cpu)];
process.stdout.write(JSON.stringify({ wall: end - wall, cpu: (used.user + used.system) / 1000 }));
})();`,
  );
  await writeBundle(await bundleProgram(entry), path.join(place, 'bundle'));
  const program = {
    command: process.execPath,
    args: [path.join(place, 'bundle/main.cjs')],
    env: { [keepCodeVariable]: '1' },
  };
  return async () => JSON.parse(await run(program)) as { wall: number; cpu: number };
}

try {
  await symlink(path.resolve(import.meta.dirname, '../node_modules'), path.join(folder, 'node_modules'));
  const cpu = new Map<string, number[]>();
  const ways: Record<string, () => Promise<number>> = {};
  for (const [index, [name, code]] of Object.entries(cases).entries()) {
    const once = await prepare(code, path.join(folder, String(index)));
    cpu.set(name, []);
    ways[name] = async () => {
      const taken = await once();
      cpu.get(name)?.push(taken.cpu);
      return taken.wall;
    };
  }
  const samples = await inTurns(ways, rounds);
  const ms = (sample: readonly number[], share: number) => percentile(sample, share).toFixed(1);
  report(
    'Loading a module',
    `Each module is bundled like the agent and loaded in a fresh process with compiled code; ${rounds} rounds in turns. The table shows the milliseconds of the loading alone, without the start of Node. The processor time is that of all threads.`,
    ['module', 'p50', 'p99', 'best', 'processor p50'],
    Object.entries(samples).map(([name, sample]) => [
      name,
      ms(sample, 0.5),
      ms(sample, 0.99),
      Math.min(...sample).toFixed(1),
      ms(cpu.get(name)?.slice(-rounds) ?? [], 0.5),
    ]),
  );
} finally {
  await rm(folder, { recursive: true, force: true });
}
