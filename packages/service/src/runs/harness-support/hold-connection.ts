import type { ConnectionDecision } from '@runyard/contract/agent/held-connections';
import { readAuthority } from '@runyard/contract/egress/host-name';
import { asksAbout, readHostRule } from '@runyard/contract/egress/host-rules';
import type { ExecutionDeps } from '../executions/deps.ts';
import { isOfFreshCheck } from '../executions/fresh-checks/fresh-checks.ts';
import { readApprovalRules, takeApprovalOfAttempt, waitForApproval } from '../executions/held-actions/held-actions.ts';
import type { RunSession } from '../executions/run-tokens/sessions.ts';

/**
 * Decides about one connection of a sandbox to a host, and waits for a person if an approval rule names the host. The proxy of the sandbox
 * asks and enforces the decision. Throws `AttemptOver`.
 */
export async function holdConnection(
  deps: Pick<ExecutionDeps, 'db' | 'notices'>,
  session: RunSession,
  { host, port }: { readonly host: string; readonly port: number },
  signal: AbortSignal,
): Promise<ConnectionDecision> {
  const authority = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  const target = readAuthority(authority);
  if (target === undefined) return 'denied';
  const { policy, rules } = await readApprovalRules(deps.db, session.runId);
  // Only the setup of a check has a network.
  if (await isOfFreshCheck(deps.db, session.runId)) return 'allowed';
  const isNamed = rules.some(({ host: text }) => {
    const rule = text === undefined ? undefined : readHostRule(text);
    return rule !== undefined && asksAbout(rule, target.host, port);
  });
  if (!isNamed) return 'allowed';
  const action = {
    heldBy: 'proxy',
    subject: authority,
    restOfRun: `all connections to ${authority}`,
    title: `one connection to ${authority}`,
    action: { name: 'connection', category: 'integration', input: { host: target.host, port } },
  } as const;
  const taken = await takeApprovalOfAttempt(deps.db, session, policy, action);
  if (taken.kind !== 'waiting') return taken.kind === 'allowed' ? 'allowed' : 'denied';
  const isApproved = await waitForApproval(deps, session.runId, taken.id, signal);
  if (isApproved !== true) return isApproved === false ? 'denied' : 'waiting';
  const again = await takeApprovalOfAttempt(deps.db, session, policy, action);
  // Another connection to the same host may have used the approval.
  return again.kind === 'allowed' ? 'allowed' : 'waiting';
}
