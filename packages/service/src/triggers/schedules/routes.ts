import { maxSchedules } from '@runyard/contract/limits';
import { routes } from '@runyard/contract/routes';
import type { ScheduledAgentItem } from '@runyard/contract/schedules/schedules';
import type { Signer } from '../../platform/secrets/signer.ts';
import { invalid, notFound, refuse, wrongCursor } from '../../platform/serving/refusal.ts';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import { isUuid } from '../../platform/store/database/uuid.ts';
import { refusedSubmission } from '../../runs/runs/submit/translate.ts';
import { type FindWaiting, withWaiting } from '../../team/access/contents/waiting-after-change.ts';
import type { Principal } from '../../team/access/keys/principal.ts';
import { ownerOf } from '../../team/access/ownership.ts';
import { serve, serveOnce } from '../../team/access/serve.ts';
import { refusedByPolicy } from '../../team/content-policy/content-policy.ts';
import { listFires, readLastFires } from '../history/list.ts';
import { checkTimes } from './check.ts';
import { toItems, upcomingTimes } from './items.ts';
import { addSchedule, changeSchedule, checkPrompt, type ManageDeps, removeSchedule, switchSchedule } from './manage.ts';
import type { ScheduleRow } from './schedule-row.ts';
import { listSchedules, readSchedule } from './schedules.ts';

interface ScheduleRouteDeps extends ManageDeps {
  readonly signing: Signer;
  readonly findWaiting: FindWaiting;
}

const noSchedule = () => notFound('schedule');

/** The routes of schedules and of their history. */
export function scheduleRoutes(deps: ScheduleRouteDeps): readonly ServedRoute[] {
  const { db, signing, findWaiting } = deps;

  const itemOf = async (principal: Principal, row: ScheduleRow): Promise<ScheduledAgentItem> => {
    const [item] = await toItems(db, principal, [row], true);
    if (!item) throw new Error('the schedule has no item');
    return item;
  };

  const setEnabled = async (principal: Principal, id: string, enabled: boolean) => {
    const row = await switchSchedule(db, principal, id, enabled);
    return row ? await itemOf(principal, row) : noSchedule();
  };

  return [
    serve(routes.listSchedules, async ({ principal, query }) => {
      const rows = await listSchedules(db, principal);
      const schedules = await toItems(db, principal, rows);
      if (!query.include?.includes('fires')) return { schedules };
      const fires = await readLastFires(
        db,
        principal.teamId,
        rows.map(({ id }) => id),
      );
      return { schedules: schedules.map((item) => ({ ...item, last_fires: [...(fires.get(item.id) ?? [])] })) };
    }),

    serve(routes.previewSchedule, async ({ body }) => {
      const checked = checkTimes(body.cron_schedule, body.timezone);
      if (checked.kind === 'invalid') return invalid(checked.faults);
      return { upcoming_runs: upcomingTimes(checked.times, Date.now()), timezone: checked.times.timezone };
    }),

    serveOnce(routes.createSchedule, {
      check: async ({ principal, body }) => {
        if (ownerOf(principal, body.team === false ? 'personal' : 'team') === 'forbidden')
          return refuse('not_authorized', { detail: 'team: agents cannot have personal schedules; leave team out.' });
        const verdict = await checkPrompt(deps, principal, body);
        return verdict.kind === 'allowed' ? null : refusedByPolicy(verdict);
      },
      work: async (tx, { principal, body }) => {
        const outcome = await addSchedule({ ...deps, db: tx }, principal, body);
        switch (outcome.kind) {
          case 'added':
            return outcome.row;
          case 'too_many':
            return refuse('conflict', { detail: `A team has at most ${maxSchedules} schedules; delete one.` });
          default:
            return refusedSubmission(outcome);
        }
      },
      answer: (row, { principal }) => itemOf(principal, row),
    }),

    serve(routes.getSchedule, async ({ principal, params }) => {
      const row = isUuid(params.scheduleId) && (await readSchedule(db, principal, params.scheduleId));
      return row ? await itemOf(principal, row) : noSchedule();
    }),

    serve(routes.updateSchedule, async ({ principal, params, body }) => {
      const outcome = await changeSchedule(deps, principal, params.scheduleId, body);
      switch (outcome.kind) {
        case 'changed':
          return await withWaiting(
            await itemOf(principal, outcome.row),
            findWaiting(db, principal, 'schedule', outcome.row.id),
          );
        case 'not_found':
          return noSchedule();
        case 'policy_violation':
        case 'policy_unavailable':
          return refusedByPolicy(outcome);
        default:
          return refusedSubmission(outcome);
      }
    }),

    serve(routes.deleteSchedule, async ({ principal, params }) =>
      (await removeSchedule(db, principal, params.scheduleId)) ? { success: true as const } : noSchedule(),
    ),

    serve(routes.pauseSchedule, ({ principal, params }) => setEnabled(principal, params.scheduleId, false)),
    serve(routes.resumeSchedule, ({ principal, params }) => setEnabled(principal, params.scheduleId, true)),

    serve(routes.listScheduleFires, async ({ principal, params, query }) => {
      const row = isUuid(params.scheduleId) && (await readSchedule(db, principal, params.scheduleId));
      if (!row) return noSchedule();
      return (await listFires(db, signing, row, query)) ?? wrongCursor();
    }),
  ];
}
