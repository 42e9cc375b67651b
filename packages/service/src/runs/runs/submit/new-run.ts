import type { RunActor } from '../../../team/access/actor.ts';
import type { Author } from '../../../team/access/audit/record.ts';
import type { RunRights } from '../../../team/access/contents/run-rights.ts';
import type { StoredAttachment } from '../../files/attachments/store.ts';
import type { GivenColumns } from '../read/columns.ts';
import type { ChildLimits } from '../tree/admit-child.ts';

/** The schedule that creates a run. The run keeps the name and expression of the schedule, even if the schedule is changed or deleted. */
export interface ScheduleOfRun {
  readonly id: string;
  readonly name: string;
  readonly cronSchedule: string;
}

/** Columns that members of `NewRun` with another name or form set. */
type SetOtherwise =
  | 'creatorKind'
  | 'creatorUid'
  | 'executorKind'
  | 'executorUid'
  | 'scheduleId'
  | 'scheduleName'
  | 'scheduleCron'
  | 'conversationId'
  | 'currentExecutionId'
  | 'isOfFactory'
  | 'rights';

/** A run that was checked and may be created. Its id is a UUIDv7. */
export interface NewRun extends Omit<GivenColumns, SetOtherwise> {
  /** Id of a model of the run whose price is unknown; absent: the prices of all models are known. */
  readonly unpricedId?: string;
  readonly creator: RunActor;
  /** The key and request that created the run, for the audit log; absent if an event, a schedule or an agent created it. */
  readonly by?: Pick<Author, 'keyId' | 'from'>;
  readonly executor: RunActor;
  /** Limits of a child run that an agent starts. */
  readonly childLimits?: ChildLimits;
  /** True: its parent has reached `child_runs.max_live`, so the run waits in the queue. */
  readonly waitsForPlace?: boolean;
  readonly schedule?: ScheduleOfRun;
  /** Id of the conversation to continue; absent: the run begins a new conversation. */
  readonly conversationId?: string;
  readonly rights: RunRights;
  readonly attachments: readonly StoredAttachment[];
}
