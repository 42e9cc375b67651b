import type { V1Job } from '@kubernetes/client-node';
import { expect, test } from 'vitest';
import { kubernetesBackend } from './backend.ts';
import type { Cluster } from './cluster.ts';
import { emptyTemplate } from './template.ts';

const limits = { memoryMb: 512, diskMb: 512, tmpMb: 64, processes: 100, openFiles: 65_536, cpus: 0 };
const specification = { executionId: 'execution', taskId: 'run', limits, isLimited: false, files: [] };

function backendOf(cluster: Partial<Cluster>) {
  const ground = {
    cluster: cluster as Cluster,
    // The cluster has not made a pod yet.
    look: { untilSeen: () => new Promise<void>(() => {}), close: () => {} },
    namespace: 'runyard',
    owner: 'owner',
    agentImage: 'registry.example/agent',
    template: emptyTemplate,
    deadlineSeconds: 60,
    keepSeconds: 60,
    secret: 'secret',
    defaultImage: 'registry.example/image:1',
    registries: ['registry.example'],
    startSeconds: 60,
    log: { warn: () => {} },
  };
  const level = { backend: 'kubernetes' as const, features: [], missing: [] };
  return kubernetesBackend(ground, { level, agentServiceRoot: '', renewPolicy: async () => {} });
}

test('a service may have only an image of an allowed registry, and the error names the service', async () => {
  const created = Promise.withResolvers<V1Job>();
  const createJob = async (job: V1Job): Promise<V1Job> => {
    created.resolve(job);
    return await new Promise(() => {});
  };
  const create = (image: string) =>
    backendOf({ createJob }).create(
      { ...specification, services: [{ name: 'db', image }] },
      new AbortController().signal,
    );
  await expect(create('postgres:17')).rejects.toThrow(
    'the service db: the image docker.io/library/postgres:17 is refused: this worker takes images of registry.example only',
  );
  await expect(create('registry.example/db:1 --privileged')).rejects.toThrow('is not the name of a container image');
  void (await create('registry.example/db')).spawn({ args: [], env: {}, runToken: 'token' });
  const { initContainers } = (await created.promise).spec?.template.spec ?? {};
  expect(initContainers?.map(({ image }) => image)).toEqual(['registry.example/agent', 'registry.example/db:latest']);
});

test('the Job of an execution is deleted if the execution is cancelled while the Job is being released', async () => {
  const cancelled = new AbortController();
  const deleted = Promise.withResolvers<string>();
  const cluster: Partial<Cluster> = {
    createJob: async () => ({ metadata: { uid: 'uid-of-job' } }),
    createSecret: async () => {},
    release: async () => cancelled.abort(),
    deleteJob: async (_name, uid) => deleted.resolve(uid ?? ''),
  };
  const sandbox = await backendOf(cluster).create(specification, cancelled.signal);
  void sandbox.spawn({ args: [], env: {}, runToken: 'token' });
  expect(await deleted.promise).toBe('uid-of-job');
});
