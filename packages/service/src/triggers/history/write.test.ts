import { randomUUIDv7 } from 'node:crypto';
import type { Factory } from '@runyard/contract/factories/factories';
import { expect, test } from 'vitest';
import { at, testAutomations } from '../../../test/automations.ts';
import { testSchedules } from '../../../test/schedules.ts';
import { openTestService } from '../../../test/service.ts';
import { defineStatement } from '../../platform/store/database/statement.ts';
import { insertStarts, type NewStart, startsParameter } from './write.ts';

const service = await openTestService();
const { db } = service.deps;
const factory = (await service.request<Factory>('POST', '/factory', { body: { name: 'Test' } })).body;
const { create } = testAutomations(service, factory.uid);
const [schedule = ''] = await testSchedules(service).insert({ teamId: service.teamId, count: 1, dueSeconds: -3600 });
const [one, other] = [(await create([at()])).uid, (await create([at()])).uid];

const insert = defineStatement({ name: 'insert_starts_in_test', text: insertStarts('$1'), row: {} });
const write = (...starts: readonly NewStart[]) => db.query(insert, [startsParameter(starts)]);

const atTime = (scheduleId: string, dueAt: string, automationUid: string | null = null): NewStart => ({
  automationUid,
  event: { scheduleId, dueAt },
  lane: null,
  result: { outcome: 'skipped', reason: '1 of 1 runs are live' },
});
const ofDelivery = (automationUid: string, deliveryId: string, result: NewStart['result']): NewStart => ({
  automationUid,
  event: { webhookUid: 'W', deliveryId },
  lane: null,
  result,
});
const waits = { outcome: 'waiting', reason: '1 of 1 runs are live' } as const;
const started = () => ({ outcome: 'started', runId: randomUUIDv7() }) as const;

test('a schedule has only one start for each of its times, even if the start created no run', async () => {
  await write(atTime(schedule, '2030-01-01T00:00:00Z'), atTime(schedule, '2030-01-02T00:00:00Z'));
  await expect(write(atTime(schedule, '2030-01-01T00:00:00Z'))).rejects.toThrow('starts_once_per_time');
});

test('each automation that reads a delivery has exactly one start for it, even if the start created no run', async () => {
  const delivery = randomUUIDv7();
  await write(ofDelivery(one, delivery, waits), ofDelivery(other, delivery, started()));
  await expect(write(ofDelivery(one, delivery, started()))).rejects.toThrow('starts_once_per_delivery');
  await write(ofDelivery(one, randomUUIDv7(), started()));
});

test('a start belongs to a schedule or an automation, and names a run only if its outcome is started', async () => {
  const columns = 'INSERT INTO starts (schedule_id, automation_uid, webhook_uid, delivery_id, outcome, run_id) VALUES';
  for (const values of [
    `(NULL, NULL, NULL, NULL, 'failed', NULL)`,
    `($1, NULL, 'W', gen_random_uuid(), 'failed', NULL)`,
    `($1, NULL, NULL, NULL, 'started', NULL)`,
    `($1, NULL, NULL, NULL, 'waiting', gen_random_uuid())`,
  ])
    await expect(db.query(`${columns} ${values}`, values.includes('$1') ? [schedule] : [])).rejects.toThrow('check');
});
