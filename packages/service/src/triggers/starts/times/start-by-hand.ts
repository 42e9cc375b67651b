import type { RunAgentResponse } from '@runyard/contract/runs/run-request';
import type { Attempt } from '../../../platform/idempotency/once.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { prepareRun, type SubmitDeps } from '../../../runs/runs/submit/prepare.ts';
import { type SubmitRefusal, writeRun } from '../../../runs/runs/submit/submit.ts';
import type { Principal } from '../../../team/access/keys/principal.ts';
import { recordStartByHand } from '../../history/write.ts';
import { recordRan } from '../../schedules/record.ts';
import { contentOf, requestOf } from '../../schedules/run-of-schedule.ts';
import { lockSchedule } from '../../schedules/schedules.ts';
import { scheduleOfRun } from '../decide/owner.ts';

/** Why no run was started: there is no such schedule (404), or the submission of the run was refused. */
export type StartFailure = { readonly kind: 'not_found' } | SubmitRefusal;

/** Starts a run of a schedule now, with the rights of the person who requests it. The times of the schedule do not change. */
export async function startByHand(
  deps: SubmitDeps,
  tx: Queryable,
  starter: Principal,
  scheduleId: string,
): Promise<Attempt<RunAgentResponse, StartFailure>> {
  const schedule = await lockSchedule(tx, starter, scheduleId, 'use');
  if (!schedule) return { kind: 'failed', failure: { kind: 'not_found' } };
  const submission = {
    actor: starter,
    by: starter,
    request: requestOf(schedule),
    source: 'SCHEDULED_AGENT',
    schedule: scheduleOfRun(schedule),
    contents: [contentOf(schedule)],
  } as const;
  const prepared = await prepareRun(deps, submission, tx);
  if (prepared.kind !== 'prepared') return { kind: 'failed', failure: prepared };
  const outcome = await writeRun(tx, prepared);
  if (outcome.kind !== 'written') return { kind: 'failed', failure: outcome };
  await recordRan(tx, schedule.id);
  await recordStartByHand(tx, schedule.id, outcome.response.run_id, starter.creator);
  return { kind: 'done', response: outcome.response };
}
