import { beforeEach, describe, expect, test, vi } from 'vitest';
import { openTestService } from '../../../../test/service.ts';
import { testWebhooks } from '../../../../test/webhooks.ts';

const service = await openTestService();
const { create, send, labels, reset } = await testWebhooks(service);
beforeEach(reset);

const tooLarge = `"${'a'.repeat(256 * 1024)}"`;

describe('the budget of a webhook', () => {
  test('accepts 60 deliveries a minute, then answers 429 with Retry-After before it checks size and credential', async () => {
    const webhook = await create();
    const answers = [];
    for (let i = 0; i < 60; i += 1) answers.push((await send(webhook, { body: `${i}` })).status);
    expect(new Set(answers)).toEqual(new Set([202]));
    for (const sent of [{}, { token: 'wrong' }, { body: tooLarge }]) {
      const { status, headers } = await send(webhook, sent);
      expect(status).toBe(429);
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
      expect(Number(headers.get('retry-after'))).toBeLessThanOrEqual(60);
    }
    expect(await labels(webhook)).toHaveLength(60);
    // Make the first two deliveries older than a minute. For each of them, one new delivery is accepted.
    await service.deps.db.query(
      `UPDATE webhooks SET version = version + 1, recent = array_fill(now() - interval '61 seconds', ARRAY[2]) || recent[3:] WHERE uid = $1`,
      [webhook.uid],
    );
    await expect.poll(async () => (await send(webhook, { body: '"a"' })).status).toBe(202);
    expect((await send(webhook, { body: '"b"' })).status).toBe(202);
    expect((await send(webhook, { body: '"c"' })).status).toBe(429);
  });

  test('is refilled on time even if the clock of the machine is set back', async () => {
    const webhook = await create();
    const full = 'UPDATE webhooks SET recent = array_fill(now(), ARRAY[60]) WHERE uid = $1';
    await service.deps.db.query(full, [webhook.uid]);
    expect((await send(webhook)).status).toBe(429);
    const { now } = Date;
    const clock = vi.spyOn(Date, 'now').mockImplementation(() => now() - 3_600_000);
    const { status, headers } = await send(webhook).finally(() => clock.mockRestore());
    expect(status).toBe(429);
    expect(Number(headers.get('retry-after'))).toBeLessThanOrEqual(60);
  });

  test('counts failed authentications separately, so that a sender with the secret is still served', async () => {
    const webhook = await create();
    for (let i = 0; i < 60; i += 1) expect((await send(webhook, { token: `${i}` })).status).toBe(401);
    const { status, headers } = await send(webhook, { token: 'wrong' });
    expect([status, Number(headers.get('retry-after')) > 0]).toEqual([429, true]);
    expect((await send(webhook)).status).toBe(202);
    expect(await labels(webhook)).toHaveLength(61);
  });

  test('counts concurrent deliveries exactly', async () => {
    const webhook = await create();
    const statuses = await Promise.all(
      Array.from({ length: 80 }, async (_, i) => (await send(webhook, { body: `${i}` })).status),
    );
    expect(statuses.filter((status) => status === 202)).toHaveLength(60);
    expect(statuses.filter((status) => status === 429)).toHaveLength(20);
  });
});
