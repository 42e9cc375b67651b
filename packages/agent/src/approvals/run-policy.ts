import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import type { ApprovalRule } from '@runyard/contract/runs/approval-rules';
import type { AgentRequest, ApprovalPolicy } from '@runyard/contract/runs/approvals';
import { policyOfHarness } from '@runyard/contract/runs/compare-approvals';
import type { ApprovalRequest, Verdict } from './approval-request.ts';
import { matchingRule } from './matching-rule.ts';

/** Decides without a person. */
export interface RunPolicy extends Pick<AgentTask, 'allowed'> {
  readonly policy: ApprovalPolicy | undefined;
  /** Limits the policy to actions that match. */
  readonly rules?: readonly ApprovalRule[] | undefined;
  readonly workspace?: string;
}

/** Returns the policy of a run's task for the actions that the harness asks about. */
export const policyOfTask = ({ agent_config: config, allowed }: AgentTask, workspace: string): RunPolicy => ({
  policy: policyOfHarness(config),
  rules: config.approval_rules,
  workspace,
  ...(allowed ? { allowed } : {}),
});

/** Words for an approval for the rest of the run, if no rule matched: only the same name and input are allowed again. */
const sameAction = 'exactly this action again';

/** Returns the key under which an approval for the rest of the run is remembered. */
export const keyOf = ({ rest_of_run: words, action }: AgentRequest): string =>
  words === undefined || words === sameAction ? (action?.fingerprint ?? '') : words;

const ruleFor = ({ rules, workspace = '/' }: RunPolicy, request: ApprovalRequest) =>
  rules && matchingRule(rules, request, workspace);

/** Returns the verdict of the policy; undefined if a person has to be asked. */
export function decideByPolicy(run: RunPolicy, request: ApprovalRequest): Verdict | undefined {
  const isPermission = request.kind === 'permission';
  const { policy = 'auto-approve' } = run;
  if (isPermission && run.rules && ruleFor(run, request) === undefined) return { decision: 'approve', by: 'policy' };
  if (policy === 'auto-deny') return { decision: 'deny', by: 'policy' };
  return policy === 'auto-approve' && isPermission ? { decision: 'approve', by: 'policy' } : undefined;
}

/** Adds to a permission request the actions that an approval for the rest of the run allows. */
export function withRestOfRun(run: RunPolicy, request: ApprovalRequest): ApprovalRequest {
  if (request.kind !== 'permission' || request.held !== undefined) return request;
  const words = run.rules === undefined && request.action !== undefined ? sameAction : ruleFor(run, request);
  return words === undefined ? request : { ...request, rest_of_run: words };
}
