import type { RunAgentRequest } from '@runyard/contract/runs/run-request';
import type { Fault } from '../../platform/fault.ts';
import type { SubmitRefusal } from '../../runs/runs/submit/submit.ts';
import type { ContentRevision } from '../../team/access/contents/content.ts';
import type { ScheduleRow } from './schedule-row.ts';

/** The members of a schedule from which the request for its runs is made. */
export type RequestMembers = Pick<ScheduleRow, 'prompt' | 'agent_config' | 'agent_uid' | 'mode' | 'metadata'>;

/** Returns the present revision of a schedule. Runs record it, because they execute the schedule's content. */
export const contentOf = ({ id, revision }: Pick<ScheduleRow, 'id' | 'revision'>): ContentRevision => ({
  kind: 'schedule',
  uid: id,
  revision,
});

export const requestOf = (schedule: RequestMembers): RunAgentRequest => ({
  prompt: schedule.prompt,
  metadata: schedule.metadata,
  ...(schedule.agent_config ? { config: schedule.agent_config } : {}),
  ...(schedule.agent_uid === null ? {} : { agent_identity_uid: schedule.agent_uid }),
  ...(schedule.mode === null ? {} : { mode: schedule.mode }),
});

/** Returns a fault in the request of a run, with the name that the wrong member has in a schedule. */
export const faultOfSchedule = ({ path, message }: Fault): Fault => ({
  path: path.replace(/^config\b/, 'agent_config').replace(/^agent_identity_uid$/, 'agent_uid'),
  message,
});

/** Returns the detail of a refusal, in which the wrong member has the name that it has in the schedule or automation. */
export function detailOf(
  { detail, fault }: { readonly detail: string; readonly fault?: Fault },
  nameOf: (fault: Fault) => Fault = faultOfSchedule,
): string {
  return fault ? detail.replace(fault.path, () => nameOf(fault).path) : detail;
}

const maxReasonLength = 1_000;

/**
 * Returns the reason why no run was created, as a text for people. `nameOf` converts the names of wrong members to those of the
 * schedule or automation.
 */
export function reasonOf(outcome: SubmitRefusal, nameOf: (fault: Fault) => Fault = faultOfSchedule): string {
  switch (outcome.kind) {
    case 'invalid':
      return outcome.faults
        .map(nameOf)
        .map(({ path, message }) => `${path}: ${message}`)
        .join('; ')
        .slice(0, maxReasonLength);
    case 'forbidden':
      return detailOf(outcome, nameOf);
    case 'withheld':
    case 'not_available':
    case 'over_budget':
    case 'storage_full':
    case 'model_outage':
    case 'policy_violation':
    case 'policy_unavailable':
      return outcome.detail;
    // These refusals do not occur: the request of a schedule has no idempotency key, no parent run and no run to repeat.
    case 'idempotency_conflict':
    case 'no_such_run':
    case 'file_lost':
    case 'child_refused':
      return `the run was refused: ${outcome.kind}`;
  }
}
