import type { Domain } from '../../platform/domain.ts';
import { searchByName } from '../../platform/search.ts';
import { boolean, nullable, timestamp } from '../../platform/store/database/statement.ts';
import type { FindWaiting } from '../../team/access/contents/waiting-after-change.ts';
import { measureOverdue } from './claim.ts';
import { scheduleRoutes } from './routes.ts';

/**
 * Finds the schedules of the team that the caller may see. Finds a personal schedule only for its owner and for administrators of the
 * team. Administrators may delete the schedule.
 */
export const scheduleSearch = searchByName({
  kind: 'schedule',
  statement: 'search_schedules',
  from: 'FROM schedules WHERE team_id = $4 AND automation_uid IS NULL AND (user_uid IS NULL OR user_uid = $5 OR $6::boolean)',
  uid: 'id::text',
  name: 'name',
  changedAt: 'updated_at',
  more: { enabled: boolean, next_run_at: nullable(timestamp) },
  values: ({ teamId, personUid, isAdministrator }) => [teamId, personUid, isAdministrator],
  toThing: ({ next_run_at: next, ...found }) => ({
    ...found,
    path: `/schedules/${found.uid}`,
    ...(next === null ? {} : { next_run_at: next }),
  }),
});

/** Schedules: prompts that become runs at fixed times. The domain `starts` creates these runs. */
export const schedulesDomain = (deps: Parameters<typeof scheduleRoutes>[0], findWaiting: FindWaiting): Domain => ({
  name: 'schedules',
  search: [scheduleSearch],
  routes: () => scheduleRoutes(deps, findWaiting),
  gauges: [() => measureOverdue(deps.db)],
});
