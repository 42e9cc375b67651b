/** The sandbox of a run: its backend, its isolation and its limits. */

import type { SandboxIsolation, TimelineEvent } from '@runyard/contract/runs/timeline';
import { visibleText } from '@runyard/contract/wire/visible';
import { Text } from '../../parts/blocks.tsx';
import { countText, durationText, numberText, sizeText } from '../../parts/format.ts';

/** The payload of the event `worker_container_ready`. The service has checked it, but an old event may lack members. */
interface Ready extends SandboxIsolation {
  readonly backend?: string;
  readonly spawn_ms?: number;
  readonly limits?: { readonly memory_mb?: number; readonly processes?: number; readonly disk_mb?: number };
  readonly network?: { readonly refused_hosts?: readonly string[] };
}

/** Returns the limits of a sandbox as a text: `4.0 GB memory, 512 processes, 8.0 GB disk`. */
export function sandboxLimits({ memory_mb: memory, processes, disk_mb: disk }: NonNullable<Ready['limits']>): string {
  const megabyte = 1024 ** 2;
  return [
    memory === undefined ? '' : `${sizeText(memory * megabyte)} memory`,
    processes === undefined ? '' : `${numberText(processes)} processes`,
    disk === undefined ? '' : `${sizeText(disk * megabyte)} disk`,
  ]
    .filter(Boolean)
    .join(', ');
}

/** Shows the sandbox with its level. A missing feature is not folded away, because it weakens the isolation. */
export function Sandbox({ event }: { event: TimelineEvent }) {
  const { backend, spawn_ms: ms, features, missing = [], limits, network } = (event.payload ?? {}) as Ready;
  const refused = network?.refused_hosts ?? [];
  return (
    <>
      {backend === 'none' ? <Text tone="bad">none: no isolation</Text> : visibleText(backend ?? 'ready')}
      {typeof ms === 'number' && `, ready in ${durationText(ms)}`}
      {limits && (
        <Text as="div" tone="dim">
          {sandboxLimits(limits)}
        </Text>
      )}
      {features && (
        <details>
          <Text as="summary" tone={missing.length > 0 ? 'wait' : 'dim'} small>
            {missing.length > 0
              ? `${countText(missing.length, 'isolation feature')} missing`
              : `All ${numberText(features.length)} isolation features`}
          </Text>
          <Text as="ul" small>
            {missing.map(({ feature, reason }) => (
              <li key={feature}>
                <Text tone="wait">{`no ${visibleText(feature)}`}</Text>
                {`: ${visibleText(reason)}`}
              </li>
            ))}
            {features.length > 0 && <Text as="li" tone="dim">{`Holds: ${features.map(visibleText).join(', ')}`}</Text>}
          </Text>
        </details>
      )}
      {refused.length > 0 && (
        <Text as="div" tone="wait" small>{`The worker does not allow ${refused.map(visibleText).join(', ')}`}</Text>
      )}
    </>
  );
}
