import { maxSchedules } from '@runyard/contract/limits';
import { routes } from '@runyard/contract/routes';
import type { CreateScheduledAgentRequest, ScheduledAgentItem } from '@runyard/contract/schedules';
import type { FastifyInstance } from 'fastify';
import { answerOnce } from '../../../platform/idempotency/answer-once.ts';
import { once } from '../../../platform/idempotency/once.ts';
import { invalid, notFound, Refusal, refuse } from '../../../platform/serving/refusal.ts';
import { isUuid } from '../../../platform/store/database/uuid.ts';
import { refusedSubmission } from '../../../runs/runs/submit/refused.ts';
import type { Principal } from '../../../team/access/keys/principal.ts';
import { ownerOf } from '../../../team/access/ownership.ts';
import { refusedByPolicy } from '../../../team/content-policy/refused.ts';
import { listFires } from '../../../triggers/history/list.ts';
import { type CheckOutcome, checkSchedule } from '../../../triggers/schedules/check.ts';
import { toItems } from '../../../triggers/schedules/items.ts';
import type { ScheduleRow } from '../../../triggers/schedules/schedule-row.ts';
import {
  createSchedule,
  deleteSchedule,
  listSchedules,
  lockSchedule,
  readSchedule,
  setScheduleEnabled,
  updateSchedule,
} from '../../../triggers/schedules/schedules.ts';
import { startByHand } from '../../../triggers/starts/times/start-by-hand.ts';
import { addRoute } from '../server/add-route.ts';
import type { ServiceDeps } from '../server/deps.ts';

const noSchedule = () => notFound('schedule');

type CheckFailure = Exclude<CheckOutcome, { kind: 'ok' }>;

/** Registers schedules and their history. */
export function registerScheduleRoutes(app: FastifyInstance, deps: ServiceDeps): void {
  const { db, models, signing, vault, contentPolicy } = deps;

  /**
   * Asks the content policy about the prompt as it would be stored, outside of transactions; null: it allows the prompt, or the request
   * is refused for another reason.
   */
  const refusalOf = async (principal: Principal, wanted: CreateScheduledAgentRequest, stored?: ScheduleRow) => {
    if (!contentPolicy) return null;
    const checked = await checkSchedule({ db, models, vault }, principal, wanted, stored);
    if (checked.kind !== 'ok') return null;
    const { prompt, agent_config } = checked.wanted;
    const texts = [prompt, agent_config?.base_prompt ?? ''].map((text) => ({ kind: 'prompt' as const, text }));
    const verdict = await contentPolicy.check(principal.teamId, texts);
    return verdict.kind === 'allowed' ? null : refusedByPolicy(verdict);
  };

  const itemOf = async (principal: Principal, row: ScheduleRow): Promise<ScheduledAgentItem> => {
    const [item] = await toItems(db, principal, [row], true);
    if (!item) throw new Error('the schedule has no item');
    return item;
  };

  addRoute(app, routes.listSchedules, async ({ principal }) => ({
    schedules: await toItems(db, principal, await listSchedules(db, principal)),
  }));

  addRoute(app, routes.createSchedule, async (call) => {
    const { principal, body } = call;
    const owner = ownerOf(principal, body.team === false ? 'personal' : 'team');
    if (owner === 'forbidden')
      return refuse('not_authorized', { detail: 'team: agents have no personal schedules; leave it out.' });
    const refused = await refusalOf(principal, body);
    if (refused) return refused;
    const outcome = await once<ScheduleRow, 'too_many' | CheckFailure>(db, call.once, async (tx) => {
      const checked = await checkSchedule({ db: tx, models, vault }, principal, body);
      if (checked.kind !== 'ok') return { kind: 'failed', failure: checked };
      const created = await createSchedule(tx, principal, owner, checked.wanted, body.enabled);
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
    const row = isUuid(params.scheduleId) && (await readSchedule(db, principal, params.scheduleId));
    return row ? await itemOf(principal, row) : noSchedule();
  });

  addRoute(app, routes.updateSchedule, async ({ principal, params, body }) => {
    if (!isUuid(params.scheduleId)) return noSchedule();
    const before = await readSchedule(db, principal, params.scheduleId);
    const refused = before && (await refusalOf(principal, body, before));
    if (refused) return refused;
    const outcome = await db.transaction(async (tx) => {
      const stored = await lockSchedule(tx, principal, params.scheduleId, 'change');
      if (!stored) return noSchedule();
      const checked = await checkSchedule({ db: tx, models, vault }, principal, body, stored);
      if (checked.kind !== 'ok') return refusedSubmission(checked);
      return await updateSchedule(tx, stored, principal, checked.wanted, body.enabled);
    });
    return outcome instanceof Refusal ? outcome : await itemOf(principal, outcome);
  });

  addRoute(app, routes.deleteSchedule, async ({ principal, params }) => {
    const { scheduleId } = params;
    if (!isUuid(scheduleId)) return noSchedule();
    return await db.transaction(async (tx) => {
      const stored = await lockSchedule(tx, principal, scheduleId, 'delete');
      if (!stored) return noSchedule();
      await deleteSchedule(tx, stored, principal);
      return { success: true as const };
    });
  });

  const setEnabled = async (principal: Principal, id: string, enabled: boolean) => {
    if (!isUuid(id)) return noSchedule();
    const row = await db.transaction(async (tx) => {
      const stored = await lockSchedule(tx, principal, id, 'change');
      return stored && (await setScheduleEnabled(tx, stored, principal, enabled));
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
    const row = isUuid(params.scheduleId) && (await readSchedule(db, principal, params.scheduleId));
    if (!row) return noSchedule();
    const page = await listFires(db, signing, row, query);
    return (
      page ?? invalid([{ path: 'cursor', message: 'is not a cursor of this list; send the query of the page before' }])
    );
  });
}
