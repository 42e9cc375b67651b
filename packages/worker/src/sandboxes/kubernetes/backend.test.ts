import { expect, test } from 'vitest';
import { kubernetesBackend } from './backend.ts';
import type { Cluster } from './cluster.ts';
import { emptyTemplate } from './template.ts';

test('the Job of an execution is deleted if the execution is cancelled while the Job is being released', async () => {
  const cancelled = new AbortController();
  const deleted = Promise.withResolvers<string>();
  const cluster: Partial<Cluster> = {
    createJob: async () => ({ metadata: { uid: 'uid-of-job' } }),
    createSecret: async () => {},
    release: async () => cancelled.abort(),
    deleteJob: async (_name, uid) => deleted.resolve(uid ?? ''),
  };
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
  const backend = kubernetesBackend(ground, { level, agentServiceRoot: '', renewPolicy: async () => {} });
  const limits = { memoryMb: 512, diskMb: 512, tmpMb: 64, processes: 100, openFiles: 65_536, cpus: 0 };
  const specification = { executionId: 'execution', taskId: 'run', limits, isLimited: false, files: [] };
  const sandbox = await backend.create(specification, cancelled.signal);
  void sandbox.spawn({ args: [], env: {}, runToken: 'token' });
  expect(await deleted.promise).toBe('uid-of-job');
});
