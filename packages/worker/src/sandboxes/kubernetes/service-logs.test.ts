import type { V1Pod } from '@kubernetes/client-node';
import { expect, test } from 'vitest';
import { serviceLogs } from './service-logs.ts';

const podWith = (restartCount: number): V1Pod => ({
  metadata: { name: 'pod' },
  status: {
    initContainerStatuses: [
      {
        name: 'service-db',
        image: 'db:1',
        imageID: '',
        ready: true,
        restartCount,
        lastState: restartCount === 0 ? {} : { terminated: { exitCode: 3 } },
      },
    ],
  },
});

test('reports each line of a service once, and that the cluster has started it again', async () => {
  const lines: string[] = [];
  const reports: unknown[] = [];
  const asked: unknown[] = [];
  const logOf = async (...order: unknown[]) => {
    asked.push(order);
    return lines.join('\n');
  };
  const logs = serviceLogs({ logOf }, [{ name: 'db', image: 'db:1' }], (printed) => reports.push(printed));
  lines.push('2026-11-29T10:00:00.000000001Z ready to accept', '2026-11-29T10:00:00.000000002Z two  words', '');
  await Promise.all([logs.report(podWith(0)), logs.report(podWith(0))]);
  expect(asked[0]).toEqual(['pod', 'service-db', true]);
  expect(reports.splice(0)).toEqual([{ name: 'db', output: 'ready to accept\ntwo  words\n' }]);
  lines.splice(1, 9, '2026-11-29T10:00:00.000000002Z two  words', '2026-11-29T10:00:01.000000000Z crash');
  await logs.report(podWith(1));
  await logs.report(podWith(1));
  await logs.report(undefined);
  expect(reports).toEqual([
    { name: 'db', output: 'crash\n', ended: 'exited with code 3; the cluster has started it again' },
  ]);
});

test('a log that cannot be read is read again later', async () => {
  const reports: unknown[] = [];
  let isBroken = true;
  const logOf = async () => {
    if (isBroken) throw new Error('no node');
    return '2026-11-29T10:00:00Z text';
  };
  const logs = serviceLogs({ logOf }, [{ name: 'db', image: 'db:1' }], (printed) => reports.push(printed));
  await logs.report(podWith(0));
  isBroken = false;
  await logs.report(podWith(0));
  expect(reports).toEqual([{ name: 'db', output: 'text\n' }]);
});
