import type { DeniedConnections } from '@runyard/contract/egress/denied';
import { maxEgressBytes } from '@runyard/contract/limits';
import type { Settings } from '@runyard/contract/settings/settings';
import { systemNames } from '@runyard/system/names/resolver';
import type { Relay } from '../relay/socket-server.ts';
import { type AskedHosts, askAboutHosts } from './asked-hosts.ts';
import { deniedLog } from './denied-log.ts';
import { type EgressPolicy, egressAddresses, egressPolicy } from './policy.ts';
import { openProxy, type ProxyLimits } from './proxy.ts';

/** The egress rules of one sandbox, in a form that can be sent to the supervisor process of this sandbox, and to the thread of its proxy. */
export interface EgressOrder {
  readonly hosts: readonly string[];
  readonly settings: EgressSettings;
  /** Absent: no approval rule of the run names a host. */
  readonly asked?: AskedHosts;
}

/** The access of one sandbox to the hosts that its environment allows. */
export interface SandboxEgress {
  readonly order: EgressOrder;
  /** Is called with the denied connections of the proxy that was opened from `order`. */
  readonly report: (denied: DeniedConnections) => void;
}

/** The outgoing connections of one execution. */
export interface ExecutionEgress extends SandboxEgress {
  readonly policy: EgressPolicy;
  /** Opens the sandbox's proxy on a socket. Only `uid` (default: the user of this process) can connect to the socket. */
  open(socketPath: string, uid?: number): Promise<Relay>;
  /** Reports the counts of denied connections. Called at the end of the execution. */
  end(): void;
}

/** The egress of all sandboxes of a worker. */
export interface Egress {
  /**
   * Makes the egress of an execution whose environment allows `hosts`. For denied connections, calls `report` a limited number of times.
   */
  ofExecution(
    hosts: readonly string[],
    report: (denied: DeniedConnections) => void,
    asked?: AskedHosts,
  ): ExecutionEgress;
}

const proxyLimits: ProxyLimits = {
  maxBytes: maxEgressBytes,
  idleMs: 10 * 60_000,
  longestMs: 6 * 60 * 60_000,
  countMs: 1_000,
  headersMs: 10_000,
};

export type EgressSettings = Pick<Settings, 'RUNYARD_EGRESS' | 'RUNYARD_EGRESS_PRIVATE_NETWORKS'>;

/** Makes the egress of a worker from its settings. */
export function makeEgress(settings: EgressSettings): Egress {
  const addresses = egressAddresses(settings.RUNYARD_EGRESS_PRIVATE_NETWORKS);
  return {
    ofExecution(hosts, report, asked) {
      const policy = egressPolicy(hosts, settings.RUNYARD_EGRESS);
      const denied = deniedLog(report);
      const ask = asked && askAboutHosts(asked);
      const options = {
        policy,
        denied,
        resolve: systemNames.resolve,
        addresses,
        limits: proxyLimits,
        ...(ask ? { ask } : {}),
      };
      const order = { hosts, settings, ...(asked ? { asked } : {}) };
      return {
        order,
        report,
        policy,
        open: (socketPath, uid) => openProxy(socketPath, uid, options),
        end: denied.close,
      };
    },
  };
}
