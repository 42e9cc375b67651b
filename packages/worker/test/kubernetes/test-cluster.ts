/**
 * Starts the cluster of a test. If the tests run with `bin/test-kubernetes`, the cluster is a real control plane with a real node.
 * Otherwise it is a fake API server with a fake kubelet.
 */
import { once } from 'node:events';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { CoreV1Api, KubeConfig } from '@kubernetes/client-node';
import { type Exchange, startMemoryCluster } from '../../../../test/fakes/cluster.ts';
import { makeAgentFolder } from './agent-folder.ts';
import { kubeconfig, startControlPlane } from './control-plane.ts';
import { type Kubelet, startKubelet } from './kubelet.ts';
import { startNode } from './node.ts';
import { startRecorder } from './recorder.ts';

/** Folder with the programs of a real cluster. If it is not set, the tests use the fake cluster. */
const programs = process.env.TEST_KUBERNETES_PROGRAMS;
export const isRealCluster = programs !== undefined;

export interface Scenario extends AsyncDisposable {
  /** All requests of the worker, with the answers. */
  readonly exchanges: readonly Exchange[];
  /** Kubeconfig file of the worker. */
  readonly config: string;
}

export interface TestCluster extends AsyncDisposable {
  /** Kubeconfig of a user who may do everything. */
  readonly admin: KubeConfig;
  readonly kubelet: Kubelet;
  /** Returns the URL at which pods reach a server that listens on 127.0.0.1. */
  reach(url: string): Promise<string>;
  /** Prepares the cluster for one worker, and begins to record the requests of this worker. */
  begin(name: string): Promise<Scenario>;
  /** Ends all processes of the real node, and then deletes its pods. A cluster does the same if it hears nothing from a node. */
  loseNode(): Promise<void>;
  /** Starts the node again, without the containers that it had. */
  returnNode(): Promise<void>;
}

/** Starts the cluster. `agentEntry` is the agent of the pods. */
export async function startTestCluster(agentEntry: string): Promise<TestCluster> {
  const folder = await mkdtemp(path.join(tmpdir(), 'runyard-kubernetes-'));
  await chmod(folder, 0o711);
  const plane = programs === undefined ? undefined : await startControlPlane(programs);
  const memory = plane === undefined ? await startMemoryCluster() : undefined;
  const admin = plane?.admin ?? adminOf(memory?.server ?? '');
  let kubelet =
    plane === undefined || programs === undefined
      ? await startKubelet({ admin, folder }, await makeAgentFolder(folder, agentEntry))
      : await startNode(plane, programs, agentEntry);
  const forwarders: net.Server[] = [];
  return {
    admin,
    get kubelet() {
      return kubelet;
    },
    async reach(url) {
      const { hostname, port } = new URL(url);
      if (kubelet.address === hostname) return url;
      const forwarder = net.createServer((from) => {
        const to = net.connect(Number(port), hostname);
        from.on('error', () => to.destroy()).pipe(to);
        to.on('error', () => from.destroy()).pipe(from);
      });
      forwarders.push(forwarder.listen(0, kubelet.address));
      await once(forwarder, 'listening');
      return `http://${kubelet.address}:${(forwarder.address() as net.AddressInfo).port}`;
    },
    async begin(name) {
      const recorder = plane && (await startRecorder(plane));
      const config = path.join(folder, `${name}.config`);
      // Turns off certificate checks, because the library otherwise refuses plain HTTP.
      const server = { server: recorder?.server ?? memory?.server, 'insecure-skip-tls-verify': true };
      await writeFile(config, JSON.stringify(kubeconfig(server, plane?.workerToken ?? name)));
      return {
        config,
        exchanges: recorder?.exchanges ?? memory?.exchangesOf(name) ?? [],
        [Symbol.asyncDispose]: async () => recorder?.[Symbol.asyncDispose](),
      };
    },
    async loseNode() {
      await kubelet[Symbol.asyncDispose]();
      const core = admin.makeApiClient(CoreV1Api);
      const { items } = await core.listPodForAllNamespaces();
      for (const { metadata } of items) {
        const { name = '', namespace = '' } = metadata ?? {};
        await core.deleteNamespacedPod({ name, namespace });
      }
    },
    async returnNode() {
      if (plane === undefined || programs === undefined) throw new Error('the stand-in cannot return');
      kubelet = await startNode(plane, programs, agentEntry);
    },
    async [Symbol.asyncDispose]() {
      for (const forwarder of forwarders) forwarder.close();
      try {
        await kubelet[Symbol.asyncDispose]();
      } finally {
        await plane?.[Symbol.asyncDispose]();
      }
      await memory?.[Symbol.asyncDispose]();
      await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
    },
  };
}

function adminOf(server: string): KubeConfig {
  const config = new KubeConfig();
  config.loadFromString(JSON.stringify(kubeconfig({ server, 'insecure-skip-tls-verify': true }, 'admin')));
  return config;
}
