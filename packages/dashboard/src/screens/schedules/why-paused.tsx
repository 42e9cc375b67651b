import type { ScheduledAgentItem, ScheduleFire } from '@runyard/contract/schedules/schedules';
import { useRead } from '../../api/read.ts';
import { useMay } from '../../api/session.ts';
import { TextLink } from '../../parts/blocks.tsx';
import { exactText } from '../../parts/format.ts';
import { nameOf } from '../../parts/person.tsx';

/** Returns true if the service itself paused the schedule. The error of the schedule then begins with the reason. */
const isPausedByService = ({ last_spawn_error: error }: ScheduledAgentItem): boolean =>
  error?.startsWith('Paused') === true;

/**
 * Says since when a schedule is paused, and why. The audit log knows the person who paused it, so only administrators see the name.
 * `fires` begins with the newest fire.
 */
export function WhyPaused({ schedule, fires }: { schedule: ScheduledAgentItem; fires: readonly ScheduleFire[] }) {
  const isAdmin = useMay('admin');
  const byService = isPausedByService(schedule);
  const log = useRead(
    ['schedule', schedule.id, 'changes'],
    async (client) => (await client.listAuditEntries({ query: { subject_uid: schedule.id } })).entries,
    { enabled: isAdmin && !byService },
  );
  // The newest change of `enabled`. If it resumed the schedule, the service has paused the schedule since then.
  const last = log.data?.find(({ after }) => after !== undefined && 'enabled' in after);
  const pause = last?.after?.enabled === false ? last : undefined;
  if (byService) {
    const at = fires[0] ? ` on ${exactText(Date.parse(fires[0].fired_at))}` : '';
    return <p>{`None: the service paused it${at}. Fix the cause above, then resume it.`}</p>;
  }
  const at = exactText(Date.parse(pause?.occurred_at ?? schedule.updated_at));
  return (
    <p>
      {pause
        ? `None: ${nameOf(pause.actor)} paused it on ${at}. `
        : `None: it is paused. It was last changed on ${at}. `}
      {isAdmin && (
        <TextLink to="/settings/$tab" params={{ tab: 'audit' }} search={{ subject_uid: schedule.id }}>
          Its changes
        </TextLink>
      )}
    </p>
  );
}
