import { workerName } from '../workers/worker-name.ts';
import { itemsOf, matching, type ReadText, type Setting } from './setting.ts';

/** An address and a port to listen on. */
interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/** `host:port`; an IPv6 address is in brackets. */
const listenAddress: ReadText<ListenAddress> = (text) => {
  const [, ipv6, name, digits] = /^(?:\[([0-9a-fA-F:]+)\]|([A-Za-z0-9.-]+)):(\d{1,5})$/.exec(text) ?? [];
  const host = ipv6 ?? name;
  const port = Number(digits);
  return host === undefined || port > 65_535
    ? { problem: 'must be an address and a port, such as 127.0.0.1:9464 or [::]:9464' }
    : { value: { host, port } };
};

const poolNames: ReadText<string[]> = (text) => {
  const items = [...new Set(itemsOf(text))];
  if (items.length > 99) return { problem: 'must be at most 99 names' };
  return items.every((item) => workerName.test(item))
    ? { value: items }
    : { problem: 'must be names of workers, of 1 to 63 characters of [A-Za-z0-9._-]' };
};

/** Settings of metrics, traces and logs. The other settings are `OTEL_…` variables (docs/metrics.md). */
export const metricsSettings = {
  RUNYARD_METRICS_LISTEN: {
    read: listenAddress,
    description:
      'Address and port of its own for `GET /metrics`, such as `127.0.0.1:9464` (docs/metrics.md). Everyone who can connect to it can read the metrics, unless RUNYARD_METRICS_TOKEN is set. Absent: the service does not listen there.',
    usedBy: ['service'],
  },
  RUNYARD_METRICS_TOKEN: {
    read: matching(/^[\x21-\x7e]{16,300}$/, 'must be 16 to 300 visible ASCII characters'),
    description:
      'Bearer token with which `GET /metrics` can be read: on the port of RUNYARD_METRICS_LISTEN, or on RUNYARD_PORT if there is no such port.',
    usedBy: ['service'],
    secret: true,
  },
  RUNYARD_METRICS_POOLS: {
    read: poolNames,
    description:
      'Pools of workers that metrics show by name, comma-separated, at most 99. All other pools of teams together are `other`.',
    usedBy: ['service'],
  },
} as const satisfies Record<string, Setting<unknown>>;
