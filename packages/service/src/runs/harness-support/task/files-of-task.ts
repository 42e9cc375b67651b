import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import type { Queryable } from '../../../platform/store/database/database.ts';
import type { RunIdentity } from '../../executions/run-tokens/sessions.ts';
import { workspaceOfConversation } from '../../files/workspaces/of-conversation.ts';
import { changesToCheck, type RestorableWorkspace, workspaceToRestore } from '../../files/workspaces/read.ts';
import { readTaskRow, type TaskRow } from './read-task-row.ts';

/** The files with which an execution begins. */
export interface TaskFiles {
  readonly kind: 'files';
  readonly workspace: AgentTask['workspace'];
  /** The position in the conversation at which the run itself saved the files. */
  readonly saved: Omit<RestorableWorkspace, 'workspace'>;
  /** True: the files are those of a finished setup, so the agent does not set up the environment. */
  readonly isSetUp: boolean;
  /** True: the files are as they were at the end of the turn that is continued, or during the turn that is resumed. */
  readonly isRestored: boolean;
  /** True: of the earlier files, only the changes of repositories are restored. */
  readonly beginsAnew: boolean;
  /** The other run of the conversation whose files these are. */
  readonly ofOther: string | undefined;
}

/**
 * Returns the files of an execution that begins. `environment_gone`: they must be set up, and their environment does not exist. `busy`: the
 * agent of the conversation's last run may still store them.
 */
export async function filesOfTask(
  db: Queryable,
  session: Pick<RunIdentity, 'runId' | 'executionId'>,
  row: TaskRow,
): Promise<
  | TaskFiles
  | { readonly kind: 'environment_gone'; readonly message: string }
  | { readonly kind: 'busy'; readonly detail: string }
> {
  if (row.fresh_check !== null) return await filesOfCheck(db, row.fresh_check);
  const isFirst = row.continues === null && row.resumes === null && row.fresh_number === 0;
  const isUsable = row.environment_id === null || row.environment_uid !== null;
  const [{ workspace: ofRun, ...saved }, ofConversation] = await Promise.all([
    workspaceToRestore(db, session.runId, { ...row, fresh: row.fresh_number }),
    isFirst && isUsable && row.has_earlier ? workspaceOfConversation(db, session) : undefined,
  ]);
  if (ofConversation === 'storing')
    return { kind: 'busy', detail: 'The last run of the conversation still stores its files.' };
  const workspace = ofRun ?? ofConversation?.workspace;
  const isSetUp = workspace !== undefined && workspace.kind !== 'missing' && workspace.kind !== 'changes';
  if (!isUsable && !isSetUp) {
    const message = `The environment ${row.environment_id} of the run was deleted, or does not admit its executor any more, before it was set up. Create a run with another one.`;
    return { kind: 'environment_gone', message };
  }
  return {
    kind: 'files',
    workspace,
    saved,
    isSetUp,
    isRestored: ofRun?.kind !== 'changes' && (row.continues !== null || (ofRun !== undefined && isSetUp)),
    beginsAnew: ofRun?.kind === 'changes',
    ofOther: ofConversation?.runId,
  };
}

/** Returns true if an execution began with files of an earlier sandbox, in which a harness has worked. */
export async function hasEarlierFiles(db: Queryable, session: RunIdentity): Promise<boolean> {
  const row = await readTaskRow(db, session);
  if (!row?.has_earlier) return false;
  const files = await filesOfTask(db, session, row);
  return files.kind === 'busy' || (files.kind === 'files' && files.workspace?.kind === 'archive');
}

/** Returns the files of a check: new clones with the stored changes of the checked run. */
async function filesOfCheck(db: Queryable, { snapshotId }: NonNullable<TaskRow['fresh_check']>): Promise<TaskFiles> {
  return {
    kind: 'files',
    workspace: await changesToCheck(db, snapshotId),
    saved: { doneBlocks: 0 },
    isSetUp: false,
    isRestored: false,
    beginsAnew: true,
    ofOther: undefined,
  };
}
