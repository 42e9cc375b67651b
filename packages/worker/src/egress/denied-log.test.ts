import type { DeniedConnections } from '@runyard/contract/egress/denied';
import { expect, test } from 'vitest';
import { deniedLog } from './denied-log.ts';

test('the log reports each denied host, port and reason once, and at the end how often each was denied', () => {
  const reports: DeniedConnections[] = [];
  const log = deniedLog((denied) => reports.push(denied));
  for (let index = 0; index < 5_000; index++) log.add(`host-${index % 100}.example`, 443, 'host_not_allowed');
  expect(reports.map(({ number }) => number)).toEqual(Array.from({ length: 20 }, (_, index) => index + 1));
  expect(reports[0]?.connections).toEqual([
    { host: 'host-0.example', port: 443, reason: 'host_not_allowed', count: 1 },
  ]);
  log.close();
  log.close();
  log.add('late.example', 443, 'ech');
  expect(reports).toHaveLength(21);
  expect(reports[20]).toMatchObject({ number: 21, total: 5_000 });
  expect(reports[20]?.connections).toHaveLength(20);
  expect(reports[20]?.connections[0]?.count).toBe(50);
});

test('the log reports no counts if each connection was denied only once', () => {
  const reports: DeniedConnections[] = [];
  const log = deniedLog((denied) => reports.push(denied));
  log.add('a.example', 443, 'host_not_allowed');
  log.add('a.example', 80, 'host_not_allowed');
  log.close();
  expect(reports).toHaveLength(2);
});

test('the log replaces control characters in host names and shortens long host names', () => {
  const reports: DeniedConnections[] = [];
  deniedLog((denied) => reports.push(denied)).add(`\u001b[2J${'x'.repeat(5_000)}`, 0, 'invalid_host');
  expect(reports[0]?.connections[0]?.host).toMatch(/^\?\[2Jx{256}$/);
});
