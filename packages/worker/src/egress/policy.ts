import os from 'node:os';
import type { DeniedReason } from '@runyard/contract/egress/denied-reasons';
import type { Host } from '@runyard/contract/egress/host-name';
import { covers, formatRule, type HostRule, intersectRules, readHostRule } from '@runyard/contract/egress/host-rules';
import type { OperatorRules } from '@runyard/contract/settings/egress';
import { type AddressRules, makeAddressRules } from '@runyard/system/address-rules';

/** The hosts to which one sandbox may connect. */
export interface EgressPolicy {
  /** Rules of the environment, limited to hosts that the operator's rules allow too. */
  readonly allowed: readonly string[];
  /** Rules of the environment that the operator does not allow at all. */
  readonly refused: readonly string[];
  /** Returns why a connection to the host is denied. Returns undefined if the host is allowed; then its addresses must still be checked. */
  refusal(host: Host, port: number): DeniedReason | undefined;
}

/**
 * Combines the rules of a sandbox's environment and of the operator. A rule of the environment that this version cannot read allows no
 * host.
 */
export function egressPolicy(hosts: readonly string[], operator: OperatorRules): EgressPolicy {
  const wanted = hosts.map((text) => ({ text, rule: readHostRule(text) }));
  const narrowed = wanted.map(({ text, rule }) => ({ text, rules: rule === undefined ? [] : narrow(rule, operator) }));
  const effective = narrowed.flatMap(({ rules }) => rules);
  const isCovered = (rules: readonly (HostRule | undefined)[], { host }: Host, port: number): boolean =>
    rules.some((rule) => rule !== undefined && covers(rule, host, port));
  return {
    allowed: [...new Set(effective.map(formatRule))],
    refused: narrowed.filter(({ rules }) => rules.length === 0).map(({ text }) => text),
    refusal(host, port) {
      if (isCovered(effective, host, port)) return undefined;
      const ofEnvironment = wanted.map(({ rule }) => rule);
      return isCovered(ofEnvironment, host, port) ? 'operator' : 'host_not_allowed';
    },
  };
}

function narrow(rule: HostRule, operator: OperatorRules): HostRule[] {
  if (operator === 'any') return [rule];
  if (operator === 'none') return [];
  return operator.flatMap((other) => intersectRules(rule, other) ?? []);
}

/**
 * Makes the rules for the addresses of allowed hosts: public addresses and the operator's networks are allowed. The machine's own
 * addresses count as private, because the machine's firewall does not block connections from the machine's own programs.
 */
export function egressAddresses(networks: readonly string[]): AddressRules {
  const isOwn = (address: string): boolean =>
    Object.values(os.networkInterfaces()).some((found) => found?.some((each) => each.address === address));
  return makeAddressRules(networks, isOwn);
}
