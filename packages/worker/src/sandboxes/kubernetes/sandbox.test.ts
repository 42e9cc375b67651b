import type { V1Pod } from '@kubernetes/client-node';
import { afterEach, expect, test, vi } from 'vitest';
import { silentLog } from '../../../test/kubernetes/silent-log.ts';
import type { Cluster } from './cluster.ts';
import type { Found } from './look.ts';
import { followJob } from './sandbox.ts';

afterEach(() => void vi.useRealTimers());

const pod = (metadata: object = {}): V1Pod => ({
  metadata: { name: 'p', uid: 'u', ...metadata },
  spec: { nodeName: 'node-7', containers: [] },
  status: { phase: 'Running', containerStatuses: [{ name: 'agent', state: { running: {} } }] as never },
});
const deleted = pod({ deletionTimestamp: new Date(), deletionGracePeriodSeconds: 30 });

/** Follows a Job. A test calls `show` with each new state of the Job's pod. */
function follow(logOf: Cluster['logOf'] = () => Promise.reject(new Error('the node does not answer'))) {
  vi.useFakeTimers({ toFake: ['performance'] });
  const shown: ((found: Found) => boolean)[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  const deletions: string[] = [];
  const running = followJob({
    cluster: {
      deletePod: async (name: string) => void deletions.push(name),
      deleteJob: async () => {},
      logOf,
    } as unknown as Cluster,
    look: {
      untilSeen: (_, see) => {
        shown.push(see);
        return promise;
      },
      close: () => {},
    },
    name: 'job',
    uid: 'job-1',
    image: 'box:1',
    agentImage: 'agent:1',
    startBy: performance.now() + 60_000,
    startSeconds: 60,
    log: silentLog,
  });
  /** Returns whether the Job has ended. */
  const show = (found: V1Pod, seconds: number): boolean => {
    vi.advanceTimersByTime(seconds * 1000);
    const isOver = shown[0]?.({ job: { metadata: { uid: 'job-1' } }, pods: [found] }) === true;
    if (isOver) resolve();
    return isOver;
  };
  return { running, show, deletions };
}

test('a sandbox is lost if the node does not end the deleted pod of the sandbox within the grace period and one more minute', async () => {
  const { running, show } = follow();
  expect(show(pod(), 0)).toBe(false);
  expect(await running.started).toBeUndefined();
  expect(show(deleted, 1)).toBe(false);
  expect(show(deleted, 89)).toBe(false);
  expect(show(deleted, 2)).toBe(true);
  const { verdict, outputTail } = await running.ended;
  expect(verdict).toMatchObject({ reason: 'node_lost', message: expect.stringContaining('node-7') });
  expect(outputTail).toBe('');
});

test('a sandbox that was killed on a lost node ends without a verdict', async () => {
  const { running, show, deletions } = follow();
  show(pod(), 1);
  running.kill('kill');
  show(deleted, 1);
  expect(show(deleted, 91)).toBe(true);
  expect(deletions).toEqual(['p']);
  expect(await running.ended).toEqual({ exitCode: 137, outOfMemory: false, outputTail: '' });
});

test('the output of a service that ends before the agent starts is read before the pod is deleted', async () => {
  const steps: string[] = [];
  const { running, show, deletions } = follow(async (_, container) => {
    steps.push(`${container} before ${deletions.length === 0 ? 'the deletion' : 'nothing'}`);
    return 'no data folder\n';
  });
  const failing: V1Pod = {
    ...pod(),
    status: {
      phase: 'Pending',
      initContainerStatuses: [{ name: 'service-db', lastState: { terminated: { exitCode: 3 } } }] as never,
    },
  };
  expect(show(failing, 1)).toBe(false);
  expect(show(failing, 1)).toBe(false);
  expect((await running.started)?.message).toMatch(/^The service db exited with code 3 before it was ready/);
  expect(steps).toEqual(['service-db before the deletion']);
  expect(deletions).toEqual(['p']);
  expect(show({ ...failing, status: { ...failing.status, phase: 'Failed' } }, 1)).toBe(true);
  expect(await running.ended).toMatchObject({
    verdict: { reason: 'service_not_started' },
    outputTail: 'no data folder\n',
  });
});
