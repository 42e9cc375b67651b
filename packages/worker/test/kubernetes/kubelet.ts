/**
 * A fake kubelet. It starts the containers of pods as processes on this machine, with the volumes, users, variables and commands of the
 * pod. Like a real kubelet, it reports the states of the containers through the API. The init container sees the files of the agent's
 * image. Other images do not exist, so the container of the run sees the programs of this machine. Limits and network policies are not
 * applied.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { chmod, mkdir, rm, writeFile } from 'node:fs/promises';
import { createServer as createPlainServer, type RequestListener } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  CoreV1Api,
  type KubeConfig,
  type V1Container,
  type V1ContainerState,
  type V1Pod,
} from '@kubernetes/client-node';
import { loaded, programsOfImage, programsOfMachine } from './container-programs.ts';

const node = 'node-1';
const pauseMs = 200;

/** Images that cannot be pulled, with the error texts of containerd 2.1. */
const pullFaults: Readonly<Record<string, string>> = {
  'ghcr.io/test/missing:1':
    'rpc error: code = NotFound desc = failed to pull and unpack image "ghcr.io/test/missing:1": failed to resolve reference "ghcr.io/test/missing:1": ghcr.io/test/missing:1: not found',
  'ghcr.io/test/private:1':
    'failed to pull and unpack image "ghcr.io/test/private:1": failed to resolve reference "ghcr.io/test/private:1": failed to authorize: failed to fetch anonymous token: unexpected status from GET request to https://ghcr.io/token: 401 Unauthorized',
  'ghcr.io/test/arm:1':
    'rpc error: code = NotFound desc = failed to pull and unpack image "ghcr.io/test/arm:1": no match for platform in manifest: not found',
};

export interface Kubelet extends AsyncDisposable {
  /** For each container that was started, the pod to which it belongs. */
  readonly starts: readonly string[];
  /** Address at which pods reach this machine. */
  readonly address: string;
}

/**
 * The API server that the fake kubelet uses, and the folder for its files. If the folder has the files `server.key` and `server.crt`,
 * the kubelet's own HTTP server uses this certificate. Otherwise it uses plain HTTP.
 */
export interface KubeletGround {
  readonly admin: KubeConfig;
  readonly folder: string;
}

/** Starts the node. `agentFolder` has the files of the agent's image. */
export async function startKubelet({ admin, folder }: KubeletGround, agentFolder: string): Promise<Kubelet> {
  const core = admin.makeApiClient(CoreV1Api);
  const starts: string[] = [];
  const pods = new Map<string, { child?: ChildProcess | undefined; stop?: 'asked' | 'killed'; done: boolean }>();
  const root = path.join(folder, 'pods');
  await mkdir(root, { mode: 0o711 });
  await chmod(folder, 0o711);
  const logFile = (pod: string, container: string) => path.join(root, `${pod}.${container}.log`);

  const answerLog: RequestListener = (request, response) => {
    const [, , , pod = '', container = ''] = new URL(request.url ?? '', 'https://kubelet').pathname.split('/');
    if (!existsSync(logFile(pod, container))) {
      response.statusCode = 400;
      response.end(`container "${container}" in pod "${pod}" is waiting to start`);
      return;
    }
    response.end(readFileSync(logFile(pod, container)));
  };
  const [key, cert] = [path.join(folder, 'server.key'), path.join(folder, 'server.crt')];
  const server = existsSync(key)
    ? createServer({ key: readFileSync(key), cert: readFileSync(cert) }, answerLog)
    : createPlainServer(answerLog);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port: Port } = server.address() as AddressInfo;

  const amounts = { cpu: '8', memory: '16Gi', pods: '110', 'ephemeral-storage': '100Gi' };
  await core.createNode({ body: { metadata: { name: node, labels: { 'kubernetes.io/hostname': node } } } });
  // Removes the taint of the new node here, because no controller runs that would do it.
  await core.patchNode({ name: node, body: [{ op: 'add', path: '/spec/taints', value: [] }] });
  const conditions = [
    {
      type: 'Ready',
      status: 'True',
      reason: 'KubeletReady',
      message: 'stands in',
      lastHeartbeatTime: new Date().toISOString(),
      lastTransitionTime: new Date().toISOString(),
    },
  ];
  const status = {
    capacity: amounts,
    allocatable: amounts,
    conditions,
    addresses: [{ type: 'InternalIP', address: '127.0.0.1' }],
    daemonEndpoints: { kubeletEndpoint: { Port } },
  };
  await core.patchNodeStatus({ name: node, body: [{ op: 'add', path: '/status', value: status }] });

  const setStatus = async (pod: V1Pod, change: object): Promise<void> => {
    const { name = '', namespace = '' } = pod.metadata ?? {};
    const ops = Object.entries(change).map(([member, value]) => ({ op: 'add', path: `/status/${member}`, value }));
    await core.patchNamespacedPodStatus({ name, namespace, body: ops }).catch(() => {});
  };
  const container = (of: V1Container, state: V1ContainerState, started = false) => ({
    name: of.name,
    image: of.image,
    imageID: '',
    ready: state.running !== undefined,
    restartCount: 0,
    started,
    state,
  });

  const run = async (
    pod: V1Pod,
    of: V1Container,
    agent: string | undefined,
    record: { child?: ChildProcess | undefined },
  ) => {
    const { name = '' } = pod.metadata ?? {};
    const volumes = path.join(root, name);
    const mounts = (of.volumeMounts ?? []).flatMap((mount) => {
      const source = path.join(volumes, mount.name, mount.subPath ?? '');
      if (!existsSync(source)) {
        mkdirSync(source, { recursive: true });
        execFileSync('chmod', ['0777', source]);
      }
      return [mount.readOnly === true ? '--ro-bind' : '--bind', source, mount.mountPath];
    });
    const uid = of.securityContext?.runAsUser ?? pod.spec?.securityContext?.runAsUser ?? 0;
    const gid = of.securityContext?.runAsGroup ?? pod.spec?.securityContext?.runAsGroup ?? 0;
    const folders = agent === undefined ? programsOfMachine() : programsOfImage(agent);
    const env = [...(of.env ?? [])].flatMap(({ name: variable, value = '' }) => [
      '--setenv',
      variable,
      value.replaceAll('$$(', '$('),
    ]);
    // Makes the parent folders, because bubblewrap itself would make them accessible only for root.
    const parents = (of.volumeMounts ?? []).flatMap(({ mountPath }) => ['--dir', path.dirname(mountPath)]);
    const args = [
      ...folders,
      ...parents,
      ...['--proc', '/proc', '--dev', '/dev', '--unshare-pid', '--unshare-ipc', '--die-with-parent', '--new-session'],
      ...mounts,
      ...['--remount-ro', '/', '--clearenv', '--setenv', 'PATH', '/usr/local/bin:/usr/bin:/bin', ...env],
      ...['--chdir', of.workingDir ?? '/', '--'],
      ...[
        ...(agent === undefined ? ['setpriv'] : loaded),
        `--reuid=${uid}`,
        `--regid=${gid}`,
        '--clear-groups',
        '--no-new-privs',
        '--bounding-set=-all',
        '--inh-caps=-all',
      ],
      ...(of.command ?? []),
      ...(of.args ?? []).map((arg) => arg.replaceAll('$$(', '$(')),
    ];
    const child = spawn('bwrap', args, { stdio: ['ignore', 'pipe', 'pipe'] });
    record.child = child;
    starts.push(name);
    appendFileSync(logFile(name, of.name), '');
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk) => appendFileSync(logFile(name, of.name), chunk));
    return await new Promise<number>((resolve) =>
      child.once('close', (code, signal) => resolve(code ?? (signal === null ? 1 : 137))),
    );
  };

  const place = async (pod: V1Pod): Promise<void> => {
    const { name = '', namespace = '' } = pod.metadata ?? {};
    for (const volume of pod.spec?.volumes ?? []) {
      const at = path.join(root, name, volume.name);
      await mkdir(at, { recursive: true });
      const isInMemory = volume.emptyDir?.medium === 'Memory';
      await chmod(at, volume.secret !== undefined ? 0o755 : isInMemory ? 0o1777 : 0o777);
      if (volume.secret === undefined) continue;
      const { data = {} } = await core.readNamespacedSecret({ name: volume.secret.secretName ?? '', namespace });
      for (const [key, value] of Object.entries(data)) {
        await writeFile(path.join(at, key), Buffer.from(value, 'base64'));
        await chmod(path.join(at, key), volume.secret.defaultMode ?? 0o644);
      }
    }
  };

  const start = async (pod: V1Pod): Promise<void> => {
    const { uid = '' } = pod.metadata ?? {};
    const record: NonNullable<ReturnType<typeof pods.get>> = { done: false };
    pods.set(uid, record);
    const [placer, agent] = [pod.spec?.initContainers?.[0], pod.spec?.containers[0]];
    if (placer === undefined || agent === undefined) return;
    const waiting = (reason: string, message?: string) => ({
      waiting: { reason, ...(message === undefined ? {} : { message }) },
    });
    await setStatus(pod, {
      startTime: new Date().toISOString(),
      initContainerStatuses: [container(placer, waiting('PodInitializing'))],
      containerStatuses: [container(agent, waiting('PodInitializing'))],
    });
    await place(pod);
    const began = new Date().toISOString();
    const placed = await run(pod, placer, agentFolder, record);
    const end = (exitCode: number, startedAt: string, id: string): V1ContainerState => ({
      terminated: {
        exitCode,
        reason: exitCode === 0 ? 'Completed' : 'Error',
        startedAt: startedAt as unknown as Date,
        finishedAt: new Date().toISOString() as unknown as Date,
        containerID: `test://${id}`,
      },
    });
    const initContainerStatuses = [container(placer, end(placed, began, 'place-agent'))];
    if (placed !== 0 || record.stop !== undefined) {
      record.done = true;
      return setStatus(pod, { phase: 'Failed', initContainerStatuses });
    }
    const fault = pullFaults[agent.image ?? ''];
    if (fault !== undefined) {
      record.done = true;
      return setStatus(pod, {
        initContainerStatuses,
        containerStatuses: [container(agent, waiting('ErrImagePull', fault))],
      });
    }
    const startedAt = new Date().toISOString();
    const exit = run(pod, agent, undefined, record);
    await setStatus(pod, {
      phase: 'Running',
      initContainerStatuses,
      containerStatuses: [container(agent, { running: { startedAt: startedAt as unknown as Date } }, true)],
    });
    const exitCode = await exit;
    record.done = true;
    await setStatus(pod, {
      phase: exitCode === 0 ? 'Succeeded' : 'Failed',
      containerStatuses: [container(agent, end(exitCode, startedAt, 'agent'))],
    });
  };

  /** Ends the processes of a deleted pod, and removes the pod when no process is left. */
  const end = async (pod: V1Pod): Promise<void> => {
    const { uid = '', name = '', namespace = '', deletionGracePeriodSeconds = 30 } = pod.metadata ?? {};
    const record = pods.get(uid);
    if (record !== undefined && !record.done) {
      if (record.stop !== undefined) return;
      record.stop = 'asked';
      // Kills bwrap, the parent of the program. When bwrap ends, all processes of the container end.
      await sleep(Math.min(deletionGracePeriodSeconds, 1) * 1000);
      record.child?.kill('SIGKILL');
      return;
    }
    await core
      .deleteNamespacedPod({ name, namespace, body: { gracePeriodSeconds: 0, preconditions: { uid } } })
      .catch(() => {});
  };

  let closed = false;
  const loop = (async () => {
    while (!closed) {
      const { items } = await core
        .listPodForAllNamespaces({ fieldSelector: `spec.nodeName=${node}` })
        .catch(() => ({ items: [] as V1Pod[] }));
      for (const pod of items) {
        if (pod.metadata?.deletionTimestamp !== undefined) await end(pod);
        else if (!pods.has(pod.metadata?.uid ?? ''))
          void start(pod).catch((error: Error) =>
            appendFileSync(path.join(folder, 'log'), `kubelet: ${error.stack}\n`),
          );
      }
      await sleep(pauseMs);
    }
  })();

  return {
    starts,
    address: '127.0.0.1',
    async [Symbol.asyncDispose]() {
      closed = true;
      await loop;
      for (const { child } of pods.values()) child?.kill('SIGKILL');
      server.close();
      await rm(root, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
    },
  };
}
