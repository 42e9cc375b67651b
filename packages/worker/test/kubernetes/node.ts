/**
 * Starts a real node of a cluster on this machine: containerd, runc, the kubelet, and a network between the pods and the machine. The
 * node pulls images from a fake registry. The agent's image comes from the same archive that `bin/build-sidecar-image` writes. Network
 * policies have no effect, because no plugin enforces them.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { openSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { CoreV1Api } from '@kubernetes/client-node';
import { type FakeImageRegistry, startFakeImageRegistry } from '../../../../test/fakes/image-registry.ts';
import { makeShellRoot } from '../../../../test/support/container-engine.ts';
import { freePort } from '../../../../test/support/free-port.ts';
import { eventually, killHard } from '../../../../test/support/system.ts';
import { imageArchive } from '../../src/sidecar/archive.ts';
import { unmountBelow } from '../../src/state/disk-image.ts';
import { agentImageContent } from './agent-folder.ts';
import type { ControlPlane } from './control-plane.ts';
import type { Kubelet } from './kubelet.ts';
import { type NodePlaces, writeContainerd, writeKubelet } from './node-settings.ts';

const name = 'node-1';
const limitMs = 180_000;
const [bridge, address] = ['ry-pods', '10.231.77.1'];
/** Mount point of cgroups. In version 1, it has a subfolder for each controller. In version 2, it is the folder of all controllers. */
const cgroups = '/sys/fs/cgroup';

const quietly = (...[program = '', ...args]: string[]): void => {
  try {
    execFileSync(program, args, { stdio: 'ignore' });
  } catch {
    // Ignores the error, because the object does not exist any more.
  }
};

/**
 * Starts the node. `programs` is the folder with `cluster` and `cni`. `agentEntry` is the main file of the agent in the agent's image.
 * `images` are archives of further images.
 */
export async function startNode(
  plane: ControlPlane,
  programs: string,
  agentEntry: string,
  images: readonly Buffer[] = [],
): Promise<Kubelet> {
  // The folder has a short name, because the path of a socket must be short.
  const folder = await mkdtemp(path.join(tmpdir(), 'ry-node-'));
  const inFolder = (...parts: string[]): string => path.join(folder, ...parts);
  const log = openSync(inFolder('log'), 'a');
  const socket = inFolder('c.sock');
  const cgroup = `/${path.basename(folder)}`;
  const places: NodePlaces = { folder, socket, cgroup, bridge, address };
  const children: ChildProcess[] = [];
  let registry: FakeImageRegistry | undefined;
  const start = (program: string, ...args: string[]): void => {
    children.push(spawn(program, args, { stdio: ['ignore', log, log], cwd: folder }));
  };
  const ctr = (...args: string[]): string =>
    execFileSync('ctr', ['--address', socket, '--namespace', 'k8s.io', ...args], { encoding: 'utf8', stdio: 'pipe' });

  const stop = async (): Promise<void> => {
    const [containerd, kubelet] = children;
    if (kubelet !== undefined) await killHard(kubelet);
    if (containerd !== undefined && containerd.exitCode === null) {
      const tasks = ctr('tasks', 'ls', '-q').split('\n').filter(Boolean);
      for (const task of tasks) quietly('ctr', '--address', socket, '--namespace', 'k8s.io', 'tasks', 'rm', '-f', task);
      await killHard(containerd);
    }
    await registry?.[Symbol.asyncDispose]();
    quietly('ip', 'link', 'del', bridge);
    await removeCgroups(path.basename(folder));
    // Repeats `unmountBelow` until it succeeds. Shared mounts are removed together, so `umount` fails for a mount that has already
    // disappeared with another mount.
    await eventually('unmounting', () =>
      unmountBelow(folder).then(
        () => true,
        () => false,
      ),
    );
    await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
  };

  try {
    // Removes what a killed test has left. Two nodes cannot run at the same time, because both would use the same bridge.
    quietly('ip', 'link', 'del', bridge);
    await removeCgroups('ry-node-*');
    execFileSync('ip', ['link', 'add', 'name', bridge, 'type', 'bridge']);
    execFileSync('ip', ['addr', 'add', `${address}/24`, 'dev', bridge]);
    execFileSync('ip', ['link', 'set', bridge, 'up']);
    await makeShellRoot(inFolder('root'));
    const layer = execFileSync('tar', ['-C', inFolder('root'), '-c', '.'], { maxBuffer: 1 << 28 });
    registry = await startFakeImageRegistry({
      'test/pause:1': { layer, command: ['/bin/sleep', '1000000'] },
      'library/debian:12': { layer },
      'library/buildpack-deps:bookworm-scm': { layer },
      'team/box:2': { layer },
      'test/private:1': { layer, needsCredentials: true },
      'test/arm:1': { layer, architecture: 'arm64' },
    });
    await writeContainerd(places, path.join(programs, 'cni'), registry.address);
    start('containerd', '--config', inFolder('containerd.toml'));
    await eventually('start of containerd', async () => {
      if (children[0]?.exitCode !== null) throw new Error((await readFile(inFolder('log'), 'utf8')).slice(-2000));
      try {
        return ctr('version');
      } catch {
        return false;
      }
    });
    for (const image of [await agentImage(agentEntry), ...images]) {
      await writeFile(inFolder('image.tar'), image);
      ctr('images', 'import', inFolder('image.tar'));
    }
    for (const controller of await controllers()) await mkdir(path.join(controller, cgroup), { recursive: true });
    await writeKubelet(plane, places, await freePort());
    start(
      path.join(programs, 'cluster'),
      'kubelet',
      ...['--config', inFolder('kubelet.yaml'), '--kubeconfig', path.join(plane.folder, 'admin.json')],
      ...['--root-dir', inFolder('kubelet'), '--hostname-override', name, '--node-ip', address],
    );
    const core = plane.admin.makeApiClient(CoreV1Api);
    await eventually(
      'start of the kubelet',
      async () => {
        if (children[1]?.exitCode !== null) throw new Error((await readFile(inFolder('log'), 'utf8')).slice(-3000));
        const node = await core.readNode({ name }).catch(() => undefined);
        return node?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True');
      },
      limitMs,
    );
    // Removes the taint of the new node here, because the controller that would do it does not run.
    await core.patchNode({ name, body: [{ op: 'add', path: '/spec/taints', value: [] }] });
    const watch = watchStarts(core);
    return {
      address,
      starts: watch.starts,
      async [Symbol.asyncDispose]() {
        await watch.stop();
        await stop();
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Records the pod of each container that the node starts. */
function watchStarts(core: CoreV1Api) {
  const starts: string[] = [];
  const seen = new Set<string>();
  let closed = false;
  const look = async (): Promise<void> => {
    const { items } = await core.listPodForAllNamespaces().catch(() => ({ items: [] }));
    for (const { metadata, status } of items)
      for (const { containerID } of [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])]) {
        if (!containerID || seen.has(containerID)) continue;
        seen.add(containerID);
        starts.push(metadata?.name ?? '');
      }
  };
  const loop = (async () => {
    while (!closed) {
      await look();
      await sleep(200);
    }
  })();
  return {
    starts,
    async stop() {
      closed = true;
      await loop;
    },
  };
}

/** Returns the archive of the agent's image, with the same content that users build for a cluster. */
async function agentImage(entry: string): Promise<Buffer> {
  const entries = await agentImageContent(entry);
  const architecture = process.arch === 'x64' ? 'amd64' : process.arch;
  const name = 'ghcr.io/test/agent:1';
  const request = { layers: [entries], architecture, labels: {}, name, compress: false, createdBy: 'test' };
  const archive = await imageArchive(request);
  return await buffer(archive.pieces());
}

/** Returns the folders in which the node creates its cgroups. */
async function controllers(): Promise<string[]> {
  const names = await readdir(cgroups);
  return names.includes('cgroup.controllers') ? [cgroups] : names.map((each) => path.join(cgroups, each));
}

/** Ends the processes in cgroups with this name, and removes the cgroups, the innermost first. */
async function removeCgroups(pattern: string): Promise<void> {
  for (const controller of await controllers()) {
    const end = `for list in $(find ${controller}/${pattern} -name cgroup.procs 2>/dev/null); do kill -9 $(cat $list); done`;
    quietly('/bin/sh', '-c', end);
  }
  await eventually('the end of the cgroups', async () => {
    for (const controller of await controllers())
      quietly('/bin/sh', '-c', `find ${controller}/${pattern} -depth -type d -exec rmdir {} ';'`);
    const left = await Promise.all((await controllers()).map((controller) => readdir(controller)));
    return !left.flat().some((name) => path.matchesGlob(name, pattern));
  });
}
