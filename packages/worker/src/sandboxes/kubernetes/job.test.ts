import { expect, test } from 'vitest';
import { jobOf } from './job.ts';
import { emptyTemplate } from './template.ts';

const ground = {
  namespace: 'runs',
  owner: 'owner',
  agentImage: 'registry.example/agent:1',
  template: emptyTemplate,
  deadlineSeconds: 60,
  keepSeconds: 60,
};
const order = {
  id: '0123456789ab',
  executionId: 'execution',
  taskId: 'run',
  image: 'registry.example/image:1',
  limits: { memoryMb: 512, diskMb: 512, tmpMb: 64, processes: 100, openFiles: 65_536, cpus: 0 },
  services: [],
  args: [],
  env: {},
  annotations: {},
};

test('a pod has the RuntimeClass of the settings, and no RuntimeClass if the settings name none', () => {
  expect(jobOf({ ...ground, runtimeClass: 'gvisor' }, order).spec?.template.spec?.runtimeClassName).toBe('gvisor');
  expect(jobOf(ground, order).spec?.template.spec).not.toHaveProperty('runtimeClassName');
});

test('the template of a pod cannot replace the label by which the network policy selects the pod', () => {
  const template = { ...emptyTemplate, labels: { 'runyard.dev/owner': 'other', team: 'agents' } };
  const labels = jobOf({ ...ground, template }, order).spec?.template.metadata?.labels;
  expect(labels).toMatchObject({ 'runyard.dev/owner': 'owner', team: 'agents' });
});

test('services have the rights, limits and network of the pod, and none of the folders of the agent', () => {
  const services = [
    { name: 'db', image: 'registry.example/db:1', args: ['--fast', '$(HOME)'], env: { KEY: '$(NAME)' }, port: 5432 },
    { name: 'queue', image: 'registry.example/queue:1' },
  ];
  const spec = jobOf(ground, { ...order, services }).spec?.template.spec;
  const [placer, db, queue] = spec?.initContainers ?? [];
  expect(placer?.name).toBe('place-agent');
  expect(db).toMatchObject({
    name: 'service-db',
    image: 'registry.example/db:1',
    restartPolicy: 'Always',
    args: ['--fast', '$$(HOME)'],
    env: [
      { name: 'HOME', value: '/tmp' },
      { name: 'KEY', value: '$$(NAME)' },
    ],
    startupProbe: { tcpSocket: { port: 5432 } },
    resources: { limits: { memory: '256Mi' } },
    securityContext: { ...spec?.containers[0]?.securityContext, runAsUser: 10003, runAsGroup: 10003 },
  });
  expect(db).not.toHaveProperty('command');
  expect(queue).not.toHaveProperty('args');
  expect(queue).not.toHaveProperty('startupProbe');
  for (const [service, name] of [
    [db, 'service-db'],
    [queue, 'service-queue'],
  ] as const) {
    expect(service?.volumeMounts?.map((mount) => [mount.name, mount.mountPath])).toEqual([
      [name, '/tmp'],
      [name, '/run'],
    ]);
    expect(spec?.volumes).toContainEqual({ name, emptyDir: { medium: 'Memory', sizeLimit: '256Mi' } });
  }
});
