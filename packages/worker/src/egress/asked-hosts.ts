import type { DeniedReason } from '@runyard/contract/egress/denied-reasons';
import type { Host } from '@runyard/contract/egress/host-name';
import { asksAbout, readHostRule } from '@runyard/contract/egress/host-rules';
import type { AmbientAgentConfig } from '@runyard/contract/runs/config';

/** Hosts to which a sandbox connects only after a person has approved the connection. */
export interface AskedHosts {
  /** Rules in the format of `EnvironmentNetwork`. */
  readonly hosts: readonly string[];
  /** URL of the service without `/api/v1`. */
  readonly serviceRoot: string;
  readonly runToken: string;
}

/** Returns why a connection is denied; undefined if the service allows this one connection. */
export type AskAboutHost = (host: Host, port: number, signal: AbortSignal) => Promise<DeniedReason | undefined>;

/** The service answers within 50 seconds. */
const longestMs = 90_000;

/** Returns the hosts in the approval rules of a run. */
export const askedHostsOf = ({ approval_rules: rules }: AmbientAgentConfig): string[] =>
  rules?.flatMap(({ host }) => host ?? []) ?? [];

/** Makes the function that asks the service about the hosts of the rules. If the service cannot answer, the connection is denied. */
export function askAboutHosts({ hosts, serviceRoot, runToken }: AskedHosts): AskAboutHost {
  const rules = hosts.map(readHostRule);
  return async ({ host }, port, signal) => {
    // A rule that this version cannot read may name any host.
    if (!rules.some((rule) => rule === undefined || asksAbout(rule, host, port))) return undefined;
    try {
      const answer = await fetch(`${serviceRoot}/api/v1/harness-support/connections`, {
        method: 'POST',
        headers: { authorization: `Bearer ${runToken}`, 'content-type': 'application/json' },
        body: JSON.stringify({ host, port }),
        redirect: 'error',
        signal: AbortSignal.any([signal, AbortSignal.timeout(longestMs)]),
      });
      const { decision } = (await answer.json()) as { readonly decision?: unknown };
      return decision === 'allowed' ? undefined : decision === 'denied' ? 'approval_denied' : 'not_approved';
    } catch {
      return 'not_approved';
    }
  };
}
