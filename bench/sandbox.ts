/**
 * Measures the cost of a bubblewrap sandbox: bwrap alone, Runyard's init, a process that was started ahead of time, and gVisor. Also
 * measures two facts on which the backend depends: whether a process of the sandbox outlives bwrap, and how much memory Node needs.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { copyFile, mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { openRelay, openUpstream } from '../packages/worker/src/relay/relay.ts';
import { initShell } from '../packages/worker/src/runtime/agent-program.ts';
import { commandSetting, initCommand } from '../packages/worker/src/sandboxes/bubblewrap/arguments.ts';
import { bubblewrapBackend } from '../packages/worker/src/sandboxes/bubblewrap/backend.ts';
import type { BubblewrapGround } from '../packages/worker/src/sandboxes/bubblewrap/ground.ts';
import { probeBubblewrap } from '../packages/worker/src/sandboxes/bubblewrap/level.ts';
import { prepareSandbox } from '../packages/worker/src/sandboxes/bubblewrap/prepare.ts';
import type { SandboxContents } from '../packages/worker/src/sandboxes/bubblewrap/raw-sandbox.ts';
import { findGvisor } from '../packages/worker/src/sandboxes/gvisor/find-gvisor.ts';
import { noneLevel } from '../packages/worker/src/sandboxes/none/backend.ts';
import type { Sandbox } from '../packages/worker/src/sandboxes/sandbox.ts';
import { run, timeOf } from './programs.ts';
import { memoryOf, report } from './report.ts';
import { openGround, specify } from './sandbox-ground.ts';
import { inTurns, spread, spreadColumns, timed } from './turns.ts';

const rounds = Number(process.env.BENCH_ROUNDS ?? 60);
const tries = 20;
/**
 * Size of this process. The process must be as large as a worker, because a fork copies the page tables of the process, so a fork of a
 * larger process takes longer.
 */
const workerMb = 150;
/** Pause before a measurement. During this pause, the backend prepares the next sandbox. */
const refilledMs = 300;

const place = await openGround();
const { ground, cgroups } = place;
const gvisor = await findGvisor();
const gvisorPlace = gvisor && (await openGround(gvisor));
const launch = { args: [], env: {}, runToken: '' };
const options = [
  ...['--unshare-all', '--unshare-user', '--die-with-parent', '--new-session', '--proc', '/proc', '--dev', '/dev'],
  ...ground.shared,
];

/** Runs bwrap with its options in the argument list. */
const bwrap = (more: readonly string[], command: readonly string[]) => ({
  command: ground.program,
  args: [...options, ...more, '--', ...command],
});
const initOptions = [
  '--as-pid-1',
  ...Object.entries(commandSetting(['/bin/true'])).flatMap(([name, value]) => ['--setenv', name, value]),
];

function firstChild(pid: number): number | undefined {
  try {
    return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ', 1)[0]) || undefined;
  } catch {
    return undefined;
  }
}

/**
 * Runs a program in a sandbox that was started ahead of time. Returns the milliseconds from the moment when the sandbox gets the command
 * to the end of the program.
 */
async function inSandbox(on: BubblewrapGround, command: readonly string[]): Promise<number> {
  const sandbox = await prepareSandbox(on, {});
  try {
    return await timed(async () => {
      const { exitCode, outputTail } = await sandbox.run(command, { PATH: '/usr/bin:/bin' }).ended;
      if (exitCode !== 0) throw new Error(`${command[0]} ended with ${exitCode}: ${outputTail}`);
    });
  } finally {
    await sandbox.dispose();
  }
}

/**
 * Runs bwrap `tries` times. Returns in how many runs a process of the sandbox still existed when bwrap had ended. The machine's init
 * must reap such a process.
 */
async function leftBehind(more: readonly string[]): Promise<number> {
  let count = 0;
  for (let n = 0; n < tries; n += 1) {
    const { command, args } = bwrap(more, ['/bin/sh', '-c', 'sleep 300 & sleep 0.1']);
    const child = spawn(command, args, { stdio: 'ignore' });
    let init: number | undefined;
    const looking = setInterval(() => {
      init ??= firstChild(child.pid ?? 0);
    }, 5);
    await once(child, 'exit');
    clearInterval(looking);
    if (init === undefined) throw new Error('bwrap ended before its child was seen');
    if (existsSync(`/proc/${init}`)) count += 1;
  }
  return count;
}

/** Returns the smallest of these memory limits under which `node -e 0` succeeds. */
async function leastForNode(kind: 'data' | 'as', megabytes: readonly number[]): Promise<string> {
  for (const mb of megabytes) {
    const args = [`--${kind}=${mb * 2 ** 20}`, process.execPath, '-e', '0'];
    const starts = await run({ command: 'prlimit', args }).then(
      () => true,
      () => false,
    );
    if (starts) return `${mb} MB`;
  }
  return `more than ${megabytes.at(-1)} MB`;
}

try {
  // A stand-in for the folder of the agent's runtime, with a Node and an agent file.
  const runtime = path.join(ground.stateRoot, 'nothing');
  await mkdir(path.join(runtime, 'agent'), { recursive: true, mode: 0o755 });
  await writeFile(path.join(runtime, 'agent/node'), '#!/bin/sh\nexit 0\n', { mode: 0o755 });
  const upstream = openUpstream('http://127.0.0.1:9');
  await copyFile('/bin/sh', path.join(runtime, initShell));
  const contents: SandboxContents = { runtime, relay: (socketPath, uid) => openRelay(socketPath, upstream, uid) };
  const backend = bubblewrapBackend({
    limits: ground.limits,
    level: noneLevel,
    make: () => prepareSandbox(ground, contents),
    warm: 0,
    log: console,
  });
  try {
    const ballast = Buffer.alloc(Math.max(0, workerMb - memoryOf(process.pid).rssMb) * 2 ** 20, 1);
    const samples = await inTurns(
      {
        program: () => timeOf({ command: '/bin/true', args: [] }),
        bwrap: () => timeOf(bwrap([], ['/bin/true'])),
        init: () => timeOf(bwrap(initOptions, initCommand('init', { nproc: 512, nofile: 1024, fileBytes: 2 ** 30 }))),
        whole: () => inSandbox(ground, ['/bin/true']),
        gvisor: () =>
          gvisorPlace === undefined ? Promise.resolve(Number.NaN) : inSandbox(gvisorPlace.ground, ['/bin/true']),
        probe: () => timed(() => probeBubblewrap(ground, cgroups)),
        demanded: async () => {
          let sandbox: Sandbox | undefined;
          const ms = await timed(async () => {
            sandbox = await prepareSandbox(ground, { runtime });
            await sandbox.spawn(launch);
          });
          await sandbox?.dispose();
          return ms;
        },
        ready: async () => {
          await delay(refilledMs);
          let sandbox: Sandbox | undefined;
          const ms = await timed(async () => {
            sandbox = await backend.create(specify(ground), new AbortController().signal);
            await sandbox.spawn(launch);
          });
          await sandbox?.dispose();
          return ms;
        },
      },
      rounds,
    );
    const { rssMb } = memoryOf(process.pid);
    const row = (name: string, sample: readonly number[]) => [name, ...spread(sample)];
    const [own, bwraps] = [await leftBehind(initOptions.slice(0, 1)), await leftBehind([])];
    const data = await leastForNode('data', [256, 384, 512, 640, 768, 1024]);
    const as = await leastForNode('as', [512, 1024, 1536, 2048, 3072, 4096]);
    report(
      'Sandboxes',
      `${rounds} rounds in turns, in a process of ${rssMb} MB (RSS, including ${Math.round(ballast.length / 2 ** 20)} MB of ballast, because a worker is about as large). All times are in milliseconds.

In **${bwraps} of ${tries}** runs with bwrap's own init, a process of the sandbox still existed after bwrap had ended, as a child of the machine's pid 1. With \`--as-pid-1\`, this happened in **${own} of ${tries}** runs. \`node -e 0\` needs \`RLIMIT_DATA\` of **${data}**, or \`RLIMIT_AS\` of **${as}** (the smallest tested size that works).`,
      ['what', ...spreadColumns],
      [
        row('`true`, start to end', samples.program),
        row('`true` in bwrap', samples.bwrap),
        row('… with our init, which sets limits', samples.init),
        row('`true` in a sandbox that was started ahead of time', samples.whole),
        row(`… with gVisor (${gvisor?.platform ?? 'not installed'})`, samples.gvisor),
        row('probe of the protection', samples.probe),
        row('assignment to options written, sandbox made on demand', samples.demanded),
        row('assignment to options written, sandbox started ahead of time', samples.ready),
      ],
    );
  } finally {
    await backend.close();
    upstream.close();
  }
} finally {
  await gvisorPlace?.close();
  await place.close();
}
