import type { ScheduledAgentItem } from '@runyard/contract/schedules/schedules';
import type { useClient } from '../../api/session.ts';

/** Returns the parts of an optimistic change that pauses a schedule, or resumes a paused schedule. */
export const switchOf = (client: ReturnType<typeof useClient>, { id, name, enabled }: ScheduledAgentItem) => ({
  from: enabled,
  to: !enabled,
  send: async (on: boolean) => {
    const params = { scheduleId: id };
    await (on ? client.resumeSchedule({ params }) : client.pauseSchedule({ params }));
  },
  says: `${enabled ? 'Paused' : 'Resumed'} ${name}`,
});
