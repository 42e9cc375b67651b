import type { RunAgentResponse } from '@runyard/contract/run-request';
import type { Attempt } from '../../platform/idempotency/once.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import { type SubmitDeps, type SubmitOutcome, submitRun } from '../../runs/runs/submit/submit.ts';
import type { Principal } from '../../team/access/keys/principal.ts';
import { recordStartByHand } from './record.ts';
import { requestOf } from './run-of-schedule.ts';
import { lockSchedule } from './schedules.ts';

/** Reasons why no run was started: 404, or the outcome of the submission. */
export type StartFailure = { readonly kind: 'not_found' } | Exclude<SubmitOutcome, { kind: 'submitted' }>;

/** Starts a run of a schedule now, as the person who asks for it. The times of the schedule do not change. */
export async function startByHand(
  deps: SubmitDeps,
  tx: Queryable,
  starter: Principal,
  scheduleId: string,
): Promise<Attempt<RunAgentResponse, StartFailure>> {
  const schedule = await lockSchedule(tx, starter, scheduleId, 'use');
  if (!schedule) return { kind: 'failed', failure: { kind: 'not_found' } };
  const submitted = await submitRun(deps, {
    actor: starter,
    request: requestOf(schedule),
    source: 'SCHEDULED_AGENT',
    schedule: { id: schedule.id, name: schedule.name, cronSchedule: schedule.cron_schedule },
    tx,
  });
  if (submitted.kind !== 'submitted') return { kind: 'failed', failure: submitted };
  await recordStartByHand(tx, schedule.id, submitted.response.run_id, starter.creator);
  return { kind: 'done', response: submitted.response };
}
