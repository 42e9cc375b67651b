/** Tests the screens for workers of the dashboard in a real browser. */
import { randomUUIDv7 } from 'node:crypto';
import type { ListWorkerPoolsResponse } from '@runyard/contract/workers/worker-pools';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { z } from 'zod';
import { insertWorkerPool } from '../../packages/service/test/key.ts';
import { newPerson, teamUidOf } from '../../packages/service/test/people.ts';
import { startTestService, type TestService } from '../../packages/service/test/service.ts';
import { noBrowser, useBrowser } from '../support/browser.ts';
import { signIn } from '../support/dashboard.ts';

describe.skipIf(noBrowser)(`workers on the dashboard${noBrowser ? ` (skipped: ${noBrowser})` : ''}`, () => {
  let service: TestService;
  let page: Page;
  let complaints: string[];
  const browser = useBrowser();

  beforeAll(async () => {
    service = await startTestService();
    const missing = [{ feature: 'cgroup', reason: 'nobody <i>delegates</i> one' }];
    const insert = (workerId: string, teamId: string | null, backend: string, draining: boolean) =>
      service.deps.db.query(
        `INSERT INTO worker_connections (id, service_instance_id, worker_id, team_id, slots, draining, version, disk_free_bytes, disk_total_bytes, sandbox)
         VALUES ($1, $1, $2, $3, 4, $4, '0.1.0', 1073741824, 107374182400, $5)`,
        [randomUUIDv7(), workerId, teamId, draining, JSON.stringify({ backend, features: ['user'], missing })],
      );
    await insert('runyard-one', null, 'bubblewrap', false);
    await insert('build-1', service.teamId, 'none', true);
    await insertWorkerPool(service.deps.db, service.teamId, 'build-1');
  });
  afterAll(() => service.close());
  beforeEach(() => {
    ({ page, complaints } = browser());
  });
  const row = (name: string) => page.getByRole('row').filter({ hasText: name });
  const pools = async () => (await service.ok<z.infer<typeof ListWorkerPoolsResponse>>('GET', '/worker-pools')).pools;

  test('shows the operator the isolation, the free slots and disk space, and the missing features of each worker', async () => {
    await signIn(page, service);
    await page.goto(`${service.baseUrl}/workers`);
    const hosted = page.getByRole('table', { name: 'Workers of the service' }).getByRole('row');
    await hosted.filter({ hasText: 'runyard-one' }).getByText('0 of 4').waitFor();
    await page.getByText('no isolation').waitFor();
    await page.getByText('draining').waitFor();
    await page.getByText('1.0 GB, little').first().waitFor();
    await hosted.getByRole('button', { name: '1 missing' }).click();
    await page.getByText('nobody <i>delegates</i> one').waitFor();
    expect(complaints).toEqual([]);
  });

  test('the page of the installation shows services and workers that are gone to owners, and other people do not see its tab', async () => {
    const report = { host: 'rack <b>1</b>', version: '0.1.0', problem: 'the bucket does not answer' };
    await service.deps.db.query(
      `INSERT INTO service_instances (id, seen_at, report) VALUES ($1, now() - interval '5 minutes', $2)`,
      [randomUUIDv7(), JSON.stringify(report)],
    );
    await service.deps.db.query(`INSERT INTO gone_workers (worker_id, was_draining) VALUES ('runyard-two', false)`);
    await signIn(page, service);
    await page.goto(`${service.baseUrl}/settings/members`);
    await page.getByRole('navigation', { name: 'Settings' }).getByRole('link', { name: 'Installation' }).click();
    const gone = page.getByRole('table', { name: 'Services' }).getByRole('row').filter({ hasText: 'rack <b>1</b>' });
    await gone.getByText('gone').waitFor();
    await gone.getByText('the bucket does not answer').waitFor();
    await page.getByRole('table', { name: 'Workers of the service' }).getByText('runyard-one').waitFor();
    await page.getByRole('table', { name: 'Workers that are gone' }).getByText('lost').waitFor();
    await page.getByText('none was made with bin/runyard backup').waitFor();
    expect(complaints).toEqual([]);

    const admin = await newPerson(service, await teamUidOf(service), 'admin');
    await signIn(page, service, admin.key);
    await page.goto(`${service.baseUrl}/settings/members`);
    const links = page.getByRole('navigation', { name: 'Settings' }).getByRole('link');
    await links.filter({ hasText: 'Audit log' }).waitFor();
    expect(await links.filter({ hasText: 'Installation' }).count()).toBe(0);
  });

  test('a member sees the workers of the team, and cannot change the pools of other persons', async () => {
    const member = await newPerson(service, await teamUidOf(service), 'member');
    await signIn(page, service, member.key);
    await page.goto(`${service.baseUrl}/workers`);
    await page.getByText('Only the operator of the service sees these workers.').waitFor();
    await page.getByText('no isolation').waitFor();
    expect(await page.getByText('runyard-one').count()).toBe(0);
    const remove = page.getByRole('button', { name: 'Delete the pool build-1. Needs the role admin' });
    expect(await remove.getAttribute('aria-disabled')).toBe('true');
    expect(complaints).toEqual([]);
  });

  test('lets a person allow another person to connect workers to a pool, take this right back, and delete the pool', async () => {
    const other = await newPerson(service, await teamUidOf(service), 'member');
    await signIn(page, service);
    await page.goto(`${service.baseUrl}/workers`);
    await page.getByRole('button', { name: 'Allow somebody to connect to build-1' }).click();
    await page.getByLabel('Person or agent').selectOption(other.uid);
    await page.getByRole('button', { name: 'Allow', exact: true }).click();
    const end = row('build-1').getByRole('button', { name: 'End the right of A member to connect to build-1' });
    await end.waitFor();
    expect((await pools())[0]?.connectors.map(({ principal }) => principal.uid)).toEqual([other.uid]);
    await end.click();
    await page.getByRole('button', { name: 'End the right', exact: true }).click();
    await end.waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Delete the pool build-1' }).click();
    await page.getByRole('button', { name: 'Delete the pool', exact: true }).click();
    await expect.poll(pools).toEqual([]);
    expect(complaints).toEqual([]);
  });
});
