/** The network of the sandboxes of checks: open during the setup, as the environment allows it, and closed when the check begins. */
import { maxApprovalRules } from '@runyard/contract/limits';
import type { AmbientAgentConfig } from '@runyard/contract/runs/config';

/** A name without an address (RFC 6761, 6.4). The rule brings the run only to workers that ask the service about hosts. */
const markHost = 'check.invalid';

/** Members of the configuration of a check's run. */
export const networkOfCheck = {
  approval_policy: 'auto-deny',
  approval_rules: [{ host: markHost }],
} as const satisfies Pick<AmbientAgentConfig, 'approval_policy' | 'approval_rules'>;

/** Returns rules about all hosts of a domain with two parts, or about an address. They may name more hosts than the environment allows. */
function rulesOf(host: string): string[] {
  const domain = /(?:^|\.)([^.:[\]*]+\.[a-z][a-z0-9-]*)(?::\d+)?$/i.exec(host)?.[1]?.toLowerCase();
  return domain === undefined ? [host] : [domain, `*.${domain}`];
}

/** Returns rules about all hosts to which the setup may connect; undefined if there are too many for a configuration. */
function rulesAboutHosts(allowedHosts: readonly string[]): string[] | undefined {
  const rules = [...new Set([markHost, ...allowedHosts.flatMap(rulesOf)])];
  return rules.length > maxApprovalRules ? undefined : rules;
}

/**
 * Returns the configuration for the worker. For the run of a check, its rules name all allowed hosts, so the proxy of the sandbox asks the
 * service about each connection. If the hosts are of too many domains, the run reaches none of them.
 */
export function withClosableNetwork<T extends AmbientAgentConfig>(
  config: T,
  allowedHosts: readonly string[],
): { readonly config: T; readonly allowedHosts: readonly string[] } {
  if (config.approval_rules?.length !== 1 || config.approval_rules[0]?.host !== markHost)
    return { config, allowedHosts };
  const rules = rulesAboutHosts(allowedHosts);
  if (rules === undefined) return { config, allowedHosts: [] };
  return { config: { ...config, approval_rules: rules.map((host) => ({ host })) }, allowedHosts };
}
