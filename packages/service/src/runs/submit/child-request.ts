import type { ApprovalPolicy } from '@runyard/contract/approvals';
import type { ChildRunRequest } from '@runyard/contract/child-runs';
import type { AmbientAgentConfig } from '@runyard/contract/config';
import type { RunAgentRequest } from '@runyard/contract/run-request';
import type { RunActor } from '../../access/actor.ts';
import type { Queryable, Statement } from '../../store/database/database.ts';

const readParent: Statement = {
  name: 'read_parent_of_request',
  text: `SELECT config, model_id, executor_kind AS kind, executor_uid AS uid FROM runs WHERE id = $1`,
};

interface ParentRow extends RunActor {
  config: AmbientAgentConfig;
  model_id: string;
}

/** The child's own configuration, and of its parent's what says where and by what it runs. */
function inherited(parent: ParentRow, own: AmbientAgentConfig): AmbientAgentConfig {
  const { environment_id, harness, worker_host } = parent.config;
  const model_id = own.harness?.model_id === undefined ? parent.model_id : undefined;
  const given = Object.entries({ environment_id, harness, worker_host, model_id }).filter(
    ([, value]) => value !== undefined,
  );
  const policy = stricter(parent.config.approval_policy, own.approval_policy);
  return { ...Object.fromEntries(given), ...own, ...(policy ? { approval_policy: policy } : {}) };
}

const byStrictness: readonly ApprovalPolicy[] = ['auto-approve', 'ask', 'auto-deny'];

/** A run must not get round its own policy by starting another one. */
function stricter(a: ApprovalPolicy | undefined, b: ApprovalPolicy | undefined): ApprovalPolicy | undefined {
  const rank = (policy: ApprovalPolicy | undefined) => (policy === undefined ? -1 : byStrictness.indexOf(policy));
  return rank(a) > rank(b) ? a : b;
}

/** A run that is to work for `parentRunId`, as the request for it would be, and in whose name; null: the parent is gone. */
export async function childRequest(
  db: Queryable,
  parentRunId: string,
  child: ChildRunRequest,
): Promise<{ readonly request: RunAgentRequest; readonly creator: RunActor } | null> {
  const [parent] = await db.query<ParentRow>(readParent, [parentRunId]);
  if (!parent) return null;
  const request = { ...child, config: inherited(parent, child.config ?? {}), parent_run_id: parentRunId };
  return { request, creator: { kind: parent.kind, uid: parent.uid } };
}
