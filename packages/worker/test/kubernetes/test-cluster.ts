/** The cluster of a test: a real control plane where `bin/test-kubernetes` runs it, else the fake one; and a node that stands in for a real one. */
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { KubeConfig } from '@kubernetes/client-node';
import { type Exchange, startMemoryCluster } from '../../../../test/fakes/cluster.ts';
import { makeAgentFolder } from './agent-folder.ts';
import { kubeconfig, startControlPlane } from './control-plane.ts';
import { type Kubelet, startKubelet } from './kubelet.ts';
import { startRecorder } from './recorder.ts';

/** Folder with the programs of a real cluster; absent: there is none. */
const programs = process.env.TEST_KUBERNETES_PROGRAMS;

export interface Scenario extends AsyncDisposable {
  /** All requests of the worker, with the answers. */
  readonly exchanges: readonly Exchange[];
  /** Kubeconfig file of the worker. */
  readonly config: string;
}

export interface TestCluster extends AsyncDisposable {
  /** False: the API server is the fake one. The node stands in for one in both cases. */
  readonly isReal: boolean;
  /** Kubeconfig of a user who may do everything. */
  readonly admin: KubeConfig;
  readonly kubelet: Kubelet;
  /** Begins a conversation of a worker with the cluster. */
  begin(name: string): Promise<Scenario>;
}

/** Starts the cluster. `agentEntry` is the agent of the pods. */
export async function startTestCluster(agentEntry: string): Promise<TestCluster> {
  const folder = await mkdtemp(path.join(tmpdir(), 'runyard-kubernetes-'));
  await chmod(folder, 0o711);
  const plane = programs === undefined ? undefined : await startControlPlane(programs);
  const memory = plane === undefined ? await startMemoryCluster() : undefined;
  const admin = plane?.admin ?? adminOf(memory?.server ?? '');
  const agentFolder = await makeAgentFolder(folder, agentEntry);
  const kubelet = await startKubelet(plane ?? { admin, folder }, agentFolder);
  return {
    isReal: plane !== undefined,
    admin,
    kubelet,
    async begin(name) {
      const recorder = plane && (await startRecorder(plane));
      const config = path.join(folder, `${name}.config`);
      // The library refuses plain HTTP unless this says that certificates do not matter.
      const server = { server: recorder?.server ?? memory?.server, 'insecure-skip-tls-verify': true };
      await writeFile(config, JSON.stringify(kubeconfig(server, plane?.workerToken ?? name)));
      return {
        config,
        exchanges: recorder?.exchanges ?? memory?.exchangesOf(name) ?? [],
        [Symbol.asyncDispose]: async () => recorder?.[Symbol.asyncDispose](),
      };
    },
    async [Symbol.asyncDispose]() {
      await kubelet[Symbol.asyncDispose]();
      await plane?.[Symbol.asyncDispose]();
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
