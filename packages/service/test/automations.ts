/** Test support: creates automations in one factory, and fires their schedule triggers. */
import type { Automation } from '@runyard/contract/automations/automations';
import type { ScheduleFire } from '@runyard/contract/schedules/schedules';
import { fireDueSchedules } from '../src/triggers/starts/times/fire.ts';
import type { TestService } from './service.ts';

/** Returns a trigger that fires at the times of a cron expression. */
export const at = (schedule: Record<string, unknown> = { cron: '0 3 * * *' }) => ({
  provider: 'schedule',
  event: 'cron_fired',
  schedule,
});

/** Returns a trigger that fires when a delivery to a webhook arrives. */
export const on = ({ uid }: { readonly uid: string }) => ({
  provider: 'webhook',
  event: 'received',
  filter: { webhook_ids: [uid] },
});

export function testAutomations({ deps, request }: Pick<TestService, 'deps' | 'request'>, factoryUid: string) {
  const { db } = deps;
  const base = `/factory/${factoryUid}/automations`;
  let count = 0;
  const read = async (uid: string) => (await request<Automation>('GET', `${base}/${uid}`)).body;
  /** Changes the schedules of the automation so that they were due this number of seconds ago. */
  const makeDue = async (uid: string, seconds = 1) => {
    await db.query(
      `UPDATE schedules SET next_run_at = date_trunc('milliseconds', now()) - $2 * interval '1 second'
       WHERE automation_uid = $1 AND enabled`,
      [uid, seconds],
    );
  };
  return {
    base,
    create: async (triggers: readonly unknown[], members: Record<string, unknown> = {}): Promise<Automation> => {
      count += 1;
      const body = { name: `A${count}`, prompt: 'Look into it.', triggers, ...members };
      const answer = await request<Automation>('POST', base, { body });
      if (answer.status !== 201) throw new Error(answer.text);
      return answer.body;
    },
    read,
    /** Replaces the given members of the automation. Its other members stay the same. */
    change: async (uid: string, members: Record<string, unknown>): Promise<Automation> => {
      const { name, prompt, triggers, overlap, enabled, agent } = await read(uid);
      const body = { name, prompt, triggers, overlap, enabled, ...(agent === undefined ? {} : { agent }), ...members };
      const answer = await request<Automation>('PUT', `${base}/${uid}`, { body });
      if (answer.status !== 200) throw new Error(answer.text);
      return answer.body;
    },
    makeDue,
    fireNow: async (uid: string): Promise<void> => {
      await makeDue(uid);
      await fireDueSchedules(deps);
    },
    /** Fires, newest first. */
    fires: async (uid: string) =>
      (await request<{ fires: ScheduleFire[] }>('GET', `${base}/${uid}/history?limit=100`)).body.fires,
  };
}
