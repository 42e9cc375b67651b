import { maxSchedules } from '@runyard/contract/limits';
import { routes } from '@runyard/contract/routes';
import type { CreateScheduledAgentRequest, ScheduledAgentItem } from '@runyard/contract/schedules';
import type { FastifyInstance } from 'fastify';
import type { Principal } from '../../access/keys/principal.ts';
import { once } from '../../idempotency/once.ts';
import { type CheckOutcome, checkSchedule } from '../../schedules/check.ts';
import { listFires } from '../../schedules/history.ts';
import { toItems } from '../../schedules/items.ts';
import type { ScheduleRow } from '../../schedules/schedule-row.ts';
import {
  createSchedule,
  deleteSchedule,
  listSchedules,
  lockSchedule,
  readSchedule,
  setScheduleEnabled,
  updateSchedule,
} from '../../schedules/schedules.ts';
import { startByHand } from '../../schedules/start-by-hand.ts';
import { isUuid } from '../../store/database/uuid.ts';
import { addRoute } from '../server/add-route.ts';
import type { ServiceDeps } from '../server/deps.ts';
import { invalid, notFound, Refusal, refuse } from '../server/problem.ts';
import { refusedByPolicy, refusedSubmission } from '../server/refused-submission.ts';
import { answerOnce } from '../server/repeatable.ts';

const noSchedule = () => notFound('schedule');

type CheckFailure = Exclude<CheckOutcome, { kind: 'ok' }>;

/** Registers schedules and their history. */
export function registerScheduleRoutes(app: FastifyInstance, deps: ServiceDeps): void {
  const { db, models, signing, contentPolicy } = deps;

  /** Asks the content policy about the prompt, outside of transactions; null: nothing is against it. */
  const refusalOf = async (teamId: string, wanted: Pick<CreateScheduledAgentRequest, 'prompt' | 'agent_config'>) => {
    const texts = [wanted.prompt ?? '', wanted.agent_config?.base_prompt ?? ''];
    const verdict = await contentPolicy?.check(
      teamId,
      texts.map((text) => ({ kind: 'prompt', text })),
    );
    return verdict && verdict.kind !== 'allowed' ? refusedByPolicy(verdict) : null;
  };

  const itemOf = async (principal: Principal, row: ScheduleRow): Promise<ScheduledAgentItem> => {
    const [item] = await toItems(db, principal, [row], true);
    if (!item) throw new Error('the schedule has no item');
    return item;
  };

  addRoute(app, routes.listSchedules, async ({ principal }) => ({
    schedules: await toItems(db, principal, await listSchedules(db, principal.teamId)),
  }));

  addRoute(app, routes.createSchedule, async (call) => {
    const { principal, body } = call;
    if (body.team === false)
      return refuse('feature_not_available', {
        detail: 'team: schedules of this service belong to the team; leave it out.',
      });
    const refused = await refusalOf(principal.teamId, body);
    if (refused) return refused;
    const outcome = await once<ScheduleRow, 'too_many' | CheckFailure>(db, call.once, async (tx) => {
      const checked = await checkSchedule({ db: tx, models }, principal, body);
      if (checked.kind !== 'ok') return { kind: 'failed', failure: checked };
      const created = await createSchedule(tx, principal, checked.wanted, body.enabled);
      return created === 'too_many' ? { kind: 'failed', failure: created } : { kind: 'done', response: created };
    });
    const row = answerOnce(outcome, (failure) =>
      failure === 'too_many'
        ? refuse('conflict', { detail: `A team has at most ${maxSchedules} schedules; delete one.` })
        : refusedSubmission(failure),
    );
    return row instanceof Refusal ? row : await itemOf(principal, row);
  });

  addRoute(app, routes.getSchedule, async ({ principal, params }) => {
    const row = isUuid(params.scheduleId) && (await readSchedule(db, principal.teamId, params.scheduleId));
    return row ? await itemOf(principal, row) : noSchedule();
  });

  addRoute(app, routes.updateSchedule, async ({ principal, params, body }) => {
    if (!isUuid(params.scheduleId)) return noSchedule();
    const refused = await refusalOf(principal.teamId, body);
    if (refused) return refused;
    const outcome = await db.transaction(async (tx) => {
      const stored = await lockSchedule(tx, principal.teamId, params.scheduleId);
      if (!stored) return noSchedule();
      const checked = await checkSchedule({ db: tx, models }, principal, body, stored);
      if (checked.kind !== 'ok') return refusedSubmission(checked);
      return await updateSchedule(tx, stored, principal.creator, checked.wanted, body.enabled);
    });
    return outcome instanceof Refusal ? outcome : await itemOf(principal, outcome);
  });

  addRoute(app, routes.deleteSchedule, async ({ principal, params }) => {
    const wasThere = isUuid(params.scheduleId) && (await deleteSchedule(db, principal.teamId, params.scheduleId));
    return wasThere ? { success: true as const } : noSchedule();
  });

  const setEnabled = async (principal: Principal, id: string, enabled: boolean) => {
    if (!isUuid(id)) return noSchedule();
    const row = await db.transaction(async (tx) => {
      const stored = await lockSchedule(tx, principal.teamId, id);
      return stored && (await setScheduleEnabled(tx, stored, enabled));
    });
    return row ? await itemOf(principal, row) : noSchedule();
  };

  addRoute(app, routes.pauseSchedule, ({ principal, params }) => setEnabled(principal, params.scheduleId, false));
  addRoute(app, routes.resumeSchedule, ({ principal, params }) => setEnabled(principal, params.scheduleId, true));

  addRoute(app, routes.runSchedule, async ({ principal, params, once: request }) => {
    const { scheduleId } = params;
    if (!isUuid(scheduleId)) return noSchedule();
    const outcome = await once(db, request, (tx) => startByHand(deps, tx, principal, scheduleId));
    return answerOnce(outcome, (failure) => (failure.kind === 'not_found' ? noSchedule() : refusedSubmission(failure)));
  });

  addRoute(app, routes.listScheduleFires, async ({ principal, params, query }) => {
    const row = isUuid(params.scheduleId) && (await readSchedule(db, principal.teamId, params.scheduleId));
    if (!row) return noSchedule();
    const page = await listFires(db, signing, row, query);
    return (
      page ?? invalid([{ path: 'cursor', message: 'is not a cursor of this list; send the query of the page before' }])
    );
  });
}
