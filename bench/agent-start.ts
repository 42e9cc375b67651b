/**
 * Measures the parts of the agent's start in sandboxes of the bubblewrap backend, beginning with the assignment to the worker. The
 * agent sends its requests through the relay to a fake service. Each part is measured with and without compiled code. The worker stores
 * this code when it makes the agent's folder: it then runs the agent once as a rehearsal.
 */
import { cp, readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { openRelay, openUpstream, type Upstream } from '../packages/worker/src/relay/relay.ts';
import { agentEnvironment } from '../packages/worker/src/sandboxes/bubblewrap/agent-command.ts';
import { inside } from '../packages/worker/src/sandboxes/bubblewrap/arguments.ts';
import { bubblewrapBackend } from '../packages/worker/src/sandboxes/bubblewrap/backend.ts';
import { prepareSandbox } from '../packages/worker/src/sandboxes/bubblewrap/prepare.ts';
import type { SandboxContents } from '../packages/worker/src/sandboxes/bubblewrap/raw-sandbox.ts';
import { noneLevel } from '../packages/worker/src/sandboxes/none/backend.ts';
import type { SandboxBackend } from '../packages/worker/src/sandboxes/sandbox.ts';
import { startFakeHarnessSupport } from '../test/fakes/harness-support.ts';
import { timeOf } from './programs.ts';
import { report } from './report.ts';
import { makeAgentRuntime, openGround, specify } from './sandbox-ground.ts';
import { inTurns, spread, spreadColumns } from './turns.ts';

const rounds = Number(process.env.BENCH_ROUNDS ?? 30);
/**
 * Pause before a measurement. After an assignment, the backend prepares the next sandbox, and this work must have ended before the
 * measurement begins.
 */
const restMs = 300;

const place = await openGround();
const undo: (() => Promise<unknown>)[] = [() => place.close()];
try {
  const runtime = await makeAgentRuntime(place.ground);
  const withoutCode = `${runtime}-without-code`;
  await cp(runtime, withoutCode, { recursive: true });
  await rm(path.join(withoutCode, 'agent/cache'), { recursive: true });
  let upstream: Upstream | undefined;
  const upstreamNow: Upstream = {
    request: (target, message) => {
      if (upstream === undefined) throw new Error('no agent is expected now');
      return upstream.request(target, message);
    },
    basePath: '',
    close: () => {},
  };
  const contents: SandboxContents = { runtime, relay: (socketPath, uid) => openRelay(socketPath, upstreamNow, uid) };
  const backendOf = (folder: string): SandboxBackend => {
    const backend = bubblewrapBackend({
      limits: place.ground.limits,
      level: noneLevel,
      make: () => prepareSandbox(place.ground, { ...contents, runtime: folder }),
      warm: 0,
      log: console,
    });
    undo.push(() => backend.close());
    return backend;
  };
  const [cached, plain] = [backendOf(runtime), backendOf(withoutCode)];

  /**
   * Starts an agent. Returns the milliseconds from the assignment to the agent's first request, to its event `agent_started`, and to its
   * end.
   */
  async function playRun(backend: SandboxBackend): Promise<{ asked: number; started: number; ended: number }> {
    const fake = await startFakeHarnessSupport({ task: { prompt: '```sh\ntrue\n```' } });
    upstream = openUpstream(fake.url);
    await delay(restMs);
    const at = performance.now();
    const times = { asked: Number.NaN, started: Number.NaN };
    fake.fault = ({ body }) => {
      if (Number.isNaN(times.asked)) times.asked = performance.now() - at;
      if (body.includes('"agent_started"')) times.started = performance.now() - at;
      return undefined;
    };
    const sandbox = await backend.create(specify(place.ground), new AbortController().signal);
    const args = ['agent', 'run', '--task-id', 'run-1', '--sandboxed', '--server-root-url', fake.url];
    await sandbox.spawn({ args, env: { TASK_ID: 'run-1' }, runToken: fake.token });
    const { exitCode, outputTail } = await sandbox.ended;
    const end = performance.now() - at;
    if (exitCode !== 0 || Number.isNaN(times.started))
      throw new Error(`the agent ended with ${exitCode}: ${outputTail}`);
    await sandbox.dispose();
    upstream.close();
    await fake.close();
    return { ...times, ended: end };
  }

  /** Runs Node in a sandbox. Returns the milliseconds from the moment when the waiting bwrap gets its options to the end of the sandbox. */
  async function inSandbox(args: readonly string[], folder = runtime): Promise<number> {
    const sandbox = await prepareSandbox(place.ground, { runtime: folder });
    try {
      // Wait until bwrap has started, because its start is not part of the measured time.
      await delay(restMs / 10);
      const at = performance.now();
      const end = await sandbox.run([`${inside.runtime}/node`, ...args], agentEnvironment({})).ended;
      if (end.exitCode !== 0) throw new Error(end.outputTail);
      return performance.now() - at;
    } finally {
      await sandbox.dispose();
    }
  }
  const parts = (await readdir(path.join(runtime, 'agent/parts'))).filter((name) => name !== 'main.cjs');
  const load = (names: readonly string[]) => [
    '--eval',
    `const { load } = require('${inside.runtime}/agent/main.cjs');${names.map((name) => `load('./${name}');`).join('')}`,
  ];
  const loop = parts.filter((name) => name.startsWith('loop-'));
  if (loop.length !== 1) throw new Error('the model loop is no part of its own any more');

  const runs = {
    cached: [] as Awaited<ReturnType<typeof playRun>>[],
    plain: [] as Awaited<ReturnType<typeof playRun>>[],
  };
  const samples = await inTurns(
    {
      node: () => timeOf({ command: process.execPath, args: ['-e', '0'] }),
      sandboxed: () => inSandbox(['-e', '0']),
      allPlain: () => inSandbox(load(parts), withoutCode),
      allCached: () => inSandbox(load(parts)),
      loopPlain: () => inSandbox(load(loop), withoutCode),
      loopCached: () => inSandbox(load(loop)),
      runPlain: async () => runs.plain.push(await playRun(plain)),
      runCached: async () => runs.cached.push(await playRun(cached)),
    },
    rounds,
  );
  const row = (name: string, plain: readonly number[] | undefined, cached: readonly number[]) => [
    name,
    ...spread(cached, 0),
    ...(plain === undefined ? ['', '', ''] : spread(plain, 0)),
  ];
  const samplesOf = (what: 'asked' | 'started' | 'ended') =>
    [runs.plain, runs.cached].map((list) => list.slice(-rounds).map((times) => times[what])) as [number[], number[]];
  report(
    'Start of the agent',
    `${rounds} rounds in turns. All times are in milliseconds. bwrap is started ahead of time and waits for its options, so the time in a row with a sandbox begins when bwrap gets the options. The time in a row with an assignment begins when the worker receives the assignment. A fake service runs in the worker's process.`,
    ['what', ...spreadColumns, ...spreadColumns.map((name) => `${name} without compiled code`)],
    [
      row('`node -e 0`, start to end', undefined, samples.node),
      row('`node -e 0` in a sandbox, start to end', undefined, samples.sandboxed),
      row('… with the model loop and the AI SDK loaded', samples.loopPlain, samples.loopCached),
      row('… with every part of the bundle loaded', samples.allPlain, samples.allCached),
      row('assignment to the first request at the service', ...samplesOf('asked')),
      row('assignment to `agent_started` there', ...samplesOf('started')),
      row('assignment to the end of the sandbox, one `true`', ...samplesOf('ended')),
    ],
  );
} finally {
  for (const step of undo.reverse()) await step();
}
