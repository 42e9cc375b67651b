import os from 'node:os';
import { type SandboxLevel, serviceImagesFeature } from '@runyard/contract/workers/worker-protocol';
import { http } from '@runyard/system/node-http';
import { listenOnSocket } from '../../relay/socket-server.ts';
import { agentNode } from '../../runtime/agent-program.ts';
import { type ProbeResult, unavailable } from '../backend-kind.ts';
import { inside } from '../bubblewrap/arguments.ts';
import { newSandboxId } from '../bubblewrap/prepare.ts';
import type { Engine, EngineFacts } from '../engine/engine.ts';
import type { SandboxLimits } from '../limits.ts';
import { limitsOfEngine } from './about-engine.ts';
import type { ContainerGround } from './preparation.ts';
import { prepareContainer } from './prepare.ts';

/**
 * Script that runs inside the container, with the agent's own Node, and prints facts about the isolation as JSON. The facts are measured
 * inside the container, because the options in the request for the container do not prove that the engine has applied them.
 */
const probeScript = `
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
const tries = (work) => { try { work(); return true; } catch { return false; } };
const status = fs.readFileSync('/proc/self/status', 'utf8');
const field = (name) => new RegExp('^' + name + ':\\\\s*(\\\\S+)', 'm').exec(status)?.[1] ?? '';
const facts = {
  uid: process.getuid(),
  processes: fs.readdirSync('/proc').filter((name) => /^[0-9]+$/.test(name)).length,
  interfaces: fs.readFileSync('/proc/net/dev', 'utf8').split('\\n').slice(2).filter((line) => /:/.test(line) && !/^\\s*lo:/.test(line)).length,
  capabilities: field('CapEff'),
  noNewPrivileges: field('NoNewPrivs'),
  seccomp: field('Seccomp'),
  root: fs.readdirSync('/'),
  rootWrite: tries(() => fs.writeFileSync('/rootfile', '')),
  runtimeWrite: tries(() => fs.writeFileSync('/opt/runyard/agent/probe', '')),
  reads: tries(() => fs.readFileSync('/opt/runyard/agent/node')),
  engine: ['/var/run/docker.sock', '/run/docker.sock'].filter((file) => fs.existsSync(file)),
  workspace: tries(() => fs.writeFileSync('/workspace/probe', '')),
  home: tries(() => fs.writeFileSync('/home/agent/probe', '')),
  kernel: os.release() + ' ' + os.version(),
};
http.get({ socketPath: '${inside.relaySocket}', path: '/' }, (answer) => {
  answer.resume();
  console.log(JSON.stringify({ ...facts, relay: answer.statusCode === 204 }));
}).on('error', (error) => console.log(JSON.stringify({ ...facts, relay: false, why: error.code })));
`;

interface Facts {
  readonly uid: number;
  readonly processes: number;
  readonly interfaces: number;
  readonly capabilities: string;
  readonly noNewPrivileges: string;
  readonly seccomp: string;
  readonly rootWrite: boolean;
  readonly runtimeWrite: boolean;
  readonly reads: boolean;
  readonly engine: readonly string[];
  readonly workspace: boolean;
  readonly home: boolean;
  readonly relay: boolean;
  readonly why?: string;
  readonly kernel: string;
}

const longestMs = 30_000;

/** A tar archive without files: two blocks of zeros. */
const emptyArchive = new Uint8Array(1024);

/** Makes an image without any file. */
async function makeEmptyImage(engine: Engine, name: string): Promise<void> {
  await engine.call('POST', '/images/create', { query: { fromSrc: '-', repo: name, tag: 'probe' }, tar: emptyArchive });
}

export interface ContainerProbe {
  readonly engine: Engine;
  readonly facts: EngineFacts;
  readonly ground: ContainerGround;
  readonly limits: SandboxLimits;
  /** Folder of the machine with the portable Node. */
  readonly runtime: string;
}

/** The result of a probe. `readsPrograms`: see `ContainerGround`. */
export interface ContainerProbeResult extends ProbeResult {
  readonly readsPrograms: boolean;
}

/**
 * Starts a container of an empty image and measures from inside how well the container is isolated. Removes everything that was created for
 * the measurement.
 */
export async function probeContainers(probe: ContainerProbe): Promise<ContainerProbeResult> {
  const { runtime } = probe.ground;
  const failed = (...reasons: string[]): ContainerProbeResult => ({
    ...unavailable('docker', ...reasons),
    readsPrograms: false,
  });
  const fault = engineFault(probe.facts, runtime);
  if (fault !== undefined) return failed(fault);
  let seen: { exitCode: number; outputTail: string };
  let readsPrograms = false;
  try {
    seen = await runProbe(probe, agentNode);
    readsPrograms = seen.exitCode === 126 && seen.outputTail.includes('ermission denied');
    if (readsPrograms) seen = await runProbe(probe, 'node');
  } catch (error) {
    return failed(`${(error as Error).message}${adviceFor(runtime)}`);
  }
  const found = readFacts(seen.outputTail);
  if (seen.exitCode !== 0 || found === undefined || !found.workspace || !found.home)
    return failed(
      `a container does not work here: exit code ${seen.exitCode}: ${seen.outputTail.trim().slice(-500)}${adviceFor(runtime)}`,
    );
  if (!found.relay)
    return failed(
      `a container cannot reach its worker by a socket (${found.why ?? 'wrong answer'})${adviceFor(runtime) || ': the engine must be on the worker’s machine'}`,
    );
  const checks: [string, boolean, string][] = [
    ['pid-namespace', found.processes < 6, 'processes of the machine are visible inside'],
    ['no-network', found.interfaces === 0, 'a network interface is visible inside'],
    ['no-capabilities', /^0+$/.test(found.capabilities), 'the container holds capabilities'],
    [
      'files',
      !found.rootWrite && !found.runtimeWrite && found.engine.length === 0,
      'the image or the agent’s files can be written, or the socket of the engine is inside',
    ],
    [
      'inside-user',
      found.uid !== 0 || process.getuid?.() === 0 || found.uid === process.getuid?.(),
      'the user inside is root',
    ],
  ];
  const broken = checks.filter(([, holds]) => !holds).map(([feature, , reason]) => `${feature}: ${reason}`);
  if (broken.length > 0) return failed(...broken);
  const features = ['images', ...checks.map(([feature]) => feature).filter((feature) => feature !== 'inside-user')];
  return { ok: true, reasons: [], level: levelOf(probe, found, features, readsPrograms), readsPrograms };
}

/** Runs `probeScript` in a container. `node`: path of the Node program below the runtime folder. */
async function runProbe({ engine, ground, limits, runtime }: ContainerProbe, node: string) {
  const id = newSandboxId();
  const name = `runyard-probe-${id}`;
  await makeEmptyImage(engine, name);
  try {
    const sandbox = await prepareContainer(
      // The engine's init, because the container runtime may not start an unreadable one.
      { ...ground, readsPrograms: true },
      {
        relay: (socketPath, uid) =>
          listenOnSocket(
            http.createServer((_, response) => response.writeHead(204).end()),
            socketPath,
            uid,
          ),
      },
      { id, executionId: 'probe', limits, runtime, image: { id: `${name}:probe`, env: [], volumes: [] } },
    );
    try {
      const command = [`${inside.runtime}/${node}`, '--input-type=module', '--eval', probeScript];
      const running = await sandbox.run(command, { PATH: '/opt/runyard/bin' });
      const tooLong = setTimeout(() => sandbox.kill('kill'), longestMs);
      const end = await running.ended;
      clearTimeout(tooLong);
      return end;
    } finally {
      await sandbox.dispose();
    }
  } finally {
    await engine.call('DELETE', `/images/${name}:probe`, { query: { force: '1' } }).catch(() => {});
  }
}

function readFacts(text: string): Facts | undefined {
  try {
    return JSON.parse(text.trim().split('\n').at(-1) ?? '');
  } catch {
    return undefined;
  }
}

/** Returns why the containers of an engine cannot be sandboxes; undefined if they may be. */
function engineFault(facts: EngineFacts, runtime: string | undefined): string | undefined {
  const has = (option: string) => facts.securityOptions.some((found) => found.split(',').includes(`name=${option}`));
  if (has('rootless') || has('userns'))
    return 'the engine maps users (rootless, or userns-remap), and the folders of a run would belong to other users: use an engine that does not';
  if (runtime !== undefined && !facts.runtimes.includes(runtime))
    return `the engine has no runtime ${runtime} (RUNYARD_DOCKER_RUNTIME), only ${facts.runtimes.join(', ')}: add it to /etc/docker/daemon.json`;
  return undefined;
}

/** Returns advice for the case that the operator has set a container runtime and this runtime does not work. */
const adviceFor = (runtime: string | undefined): string =>
  runtime === undefined
    ? ''
    : `; the runtime is ${runtime} (RUNYARD_DOCKER_RUNTIME). gVisor's runsc needs "runtimeArgs": ["--network=none", "--host-uds=open"] in /etc/docker/daemon.json`;

function levelOf(
  { facts, ground }: ContainerProbe,
  found: Facts,
  features: string[],
  readsPrograms: boolean,
): SandboxLevel {
  const missing: SandboxLevel['missing'] = [];
  const add = (feature: string, holds: boolean, reason: string): void => {
    if (holds) features.push(feature);
    else missing.push({ feature, reason });
  };
  add(
    'no-new-privileges',
    found.noNewPrivileges === '1',
    'the runtime does not say that setuid programs have no effect',
  );
  add('seccomp', found.seccomp === '2', 'system calls are not filtered by the engine’s seccomp profile');
  add(
    'user',
    ground.ownUsers,
    'sandboxes share the worker’s user, because only root can give each one its own; run the worker as root',
  );
  for (const { feature, holds, reason } of limitsOfEngine(facts)) add(feature, holds, reason);
  const { disks } = ground;
  add(
    'disk-quota',
    disks.ok,
    `disk use is watched every few seconds, not limited by the kernel: ${disks.ok ? '' : disks.reason}`,
  );
  const ownKernel = found.kernel !== `${os.release()} ${os.version()}`;
  add(
    ownKernel ? 'own-kernel' : 'kernel',
    ownKernel,
    'containers share the machine’s kernel, which does not protect against exploits of the kernel; RUNYARD_DOCKER_RUNTIME=runsc (gVisor) or kata gives each container a separate kernel',
  );
  add(
    serviceImagesFeature,
    !ownKernel,
    'services of an environment cannot start from images: containers with a separate kernel do not share a network',
  );
  add(
    'private-memory',
    !found.reads && !readsPrograms && !ownKernel,
    'commands of a run may be able to read the memory of its agent: this protection is only known to work with the machine’s own kernel',
  );
  return { backend: 'docker', features, missing };
}
