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
