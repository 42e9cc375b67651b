import type { V1Job, V1Pod } from '@kubernetes/client-node';
import { expect, test } from 'vitest';
import { readLostJob, readPod } from './pod-state.ts';

const read = (status: object) =>
  readPod({ spec: { nodeName: 'n', containers: [] }, status } as V1Pod, 'box:1', 'agent:1');
const ended = (terminated: object) => [{ name: 'agent', state: { terminated } }];

test('readPod returns `ended` only if the node has reported the end of the pod', () => {
  expect(read({ phase: 'Running', containerStatuses: ended({ exitCode: 0 }) })).toEqual({ phase: 'running' });
  expect(read({ phase: 'Succeeded', containerStatuses: ended({ exitCode: 0, startedAt: new Date() }) })).toEqual({
    phase: 'ended',
    exitCode: 0,
    outOfMemory: false,
    hasStarted: true,
  });
});

test('readPod returns whether memory, disk, an eviction or the deadline ended the pod', () => {
  expect(read({ phase: 'Failed', containerStatuses: ended({ exitCode: 137, reason: 'OOMKilled' }) })).toMatchObject({
    outOfMemory: true,
  });
  const evicted = (message: string) => read({ phase: 'Failed', reason: 'Evicted', message });
  expect(evicted('Usage of EmptyDir volume "work" exceeds the limit "4Gi".')).toMatchObject({
    verdict: { reason: 'disk_limit' },
  });
  expect(evicted('The node was low on resource: memory.')).toMatchObject({ verdict: { reason: 'pod_evicted' } });
  expect(read({ phase: 'Failed', reason: 'DeadlineExceeded' })).toMatchObject({
    verdict: { reason: 'deadline_exceeded' },
  });
});

test('readPod returns a special reason if the agent was built for another architecture than the architecture of the node', () => {
  const terminated = { exitCode: 128, reason: 'StartError', message: 'exec /agent/node: exec format error' };
  expect(read({ phase: 'Failed', containerStatuses: ended(terminated) })).toMatchObject({
    hasStarted: false,
    verdict: { reason: 'image_wrong_architecture' },
  });
});

test('readPod returns that a pod may still start if the registry of the image does not answer at the moment', () => {
  const waiting = { reason: 'ErrImagePull', message: 'dial tcp: i/o timeout' };
  const state = read({ phase: 'Pending', containerStatuses: [{ name: 'agent', state: { waiting } }] });
  expect(state).toMatchObject({ phase: 'starting', because: { reason: 'image_not_pulled' } });
  expect(state).not.toHaveProperty('never');
});

test('readPod returns the service that has ended before it was ready, and whose image cannot be pulled', () => {
  const services = (status: object) =>
    read({ phase: 'Pending', initContainerStatuses: [{ name: 'place-agent' }, { name: 'service-db', ...status }] });
  expect(services({ state: { running: {} } })).toEqual({ phase: 'starting' });
  const lastState = { terminated: { exitCode: 3, reason: 'Error' } };
  expect(services({ state: { waiting: { reason: 'CrashLoopBackOff' } }, lastState })).toEqual({
    phase: 'starting',
    because: {
      reason: 'service_not_started',
      message: expect.stringMatching(/^The service db exited with code 3 before it was ready\. Fix/),
    },
    never: true,
    container: 'service-db',
  });
  expect(services({ state: { waiting: { reason: 'ImagePullBackOff', message: 'not found' } } })).toMatchObject({
    because: { reason: 'image_not_found', message: expect.stringMatching(/^the service db: the image/) },
  });
});

test('readLostJob returns the reason why a Job has no pod', () => {
  const failed = (reason: string) =>
    ({ status: { conditions: [{ type: 'Failed', status: 'True', reason }] } }) as V1Job;
  expect(readLostJob(undefined).reason).toBe('job_deleted');
  expect(readLostJob(failed('DeadlineExceeded')).reason).toBe('deadline_exceeded');
  expect(readLostJob(failed('BackoffLimitExceeded')).reason).toBe('pod_lost');
});
