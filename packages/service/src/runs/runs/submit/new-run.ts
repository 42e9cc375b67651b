import type { AmbientAgentConfig } from '@runyard/contract/runs/config';
import type { RunSourceType } from '@runyard/contract/runs/states';
import type { RunActor } from '../../../team/access/actor.ts';
import type { Author } from '../../../team/access/audit/record.ts';
import type { RunContent } from '../../../team/access/contents/content.ts';
import type { RunRights } from '../../../team/access/contents/run-rights.ts';
import type { StoredAttachment } from '../../files/attachments/store.ts';
import type { ChildLimits } from '../tree/admit-child.ts';

/** The schedule that creates a run. The run keeps the name and expression of the schedule, even if the schedule is changed or deleted. */
export interface ScheduleOfRun {
  readonly id: string;
  readonly name: string;
  readonly cronSchedule: string;
}

/** A run that was checked and may be created. */
export interface NewRun {
  /** UUIDv7 */
  readonly id: string;
  readonly teamId: string;
  readonly title: string;
  readonly prompt: string;
  readonly config: AmbientAgentConfig;
  readonly name?: string;
  readonly modelId: string;
  /** Id of a model of the run whose price is unknown; absent: the prices of all models are known. */
  readonly unpricedId?: string;
  readonly harness: string;
  readonly environmentId?: string;
  /** Revision of the environment. The run uses this revision even if the environment changes while the run waits. */
  readonly environmentRevision?: number;
  readonly skillSpec?: string;
  /** Name of the self-hosted worker that must execute the run; absent: workers of the hosted pool execute it. */
  readonly workerHost?: string;
  readonly source: RunSourceType;
  readonly creator: RunActor;
  /** The key and request that created the run, for the audit log; absent if an event, a schedule or an agent created it. */
  readonly by?: Pick<Author, 'keyId' | 'from'>;
  readonly executor: RunActor;
  readonly mode?: string;
  readonly parentRunId?: string;
  /** Ids of the ancestors, the parent first and the root last. */
  readonly ancestorIds: readonly string[];
  /** Limits of a child run that an agent starts. */
  readonly childLimits?: ChildLimits;
  /** True: its parent has reached `child_runs.max_live`, so the run waits in the queue. */
  readonly waitsForPlace?: boolean;
  readonly schedule?: ScheduleOfRun;
  readonly metadata: Readonly<Record<string, string>>;
  /** Id of the conversation to continue; absent: the run begins a new conversation. */
  readonly conversationId?: string;
  /** The contents that the run executes, with their authors. */
  readonly contents: readonly RunContent[];
  /** Its rights. */
  readonly rights: RunRights;
  readonly attachments: readonly StoredAttachment[];
}
