/** The sandbox of a run: its backend, its isolation and its limits. */
import type { SandboxIsolation, TimelineEvent } from '@runyard/contract/runs/timeline';
import { visibleText } from '@runyard/contract/wire/visible';
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
      {backend === 'none' ? <span className="badc">none: no isolation</span> : visibleText(backend ?? 'ready')}
      {typeof ms === 'number' && `, ready in ${durationText(ms)}`}
      {limits && <div className="dim">{sandboxLimits(limits)}</div>}
      {features && (
        <details>
          <summary className={missing.length > 0 ? 'waitc small' : 'dim small'}>
            {missing.length > 0
              ? `${countText(missing.length, 'isolation feature')} missing`
              : `All ${numberText(features.length)} isolation features`}
          </summary>
          <ul className="small">
            {missing.map(({ feature, reason }) => (
              <li key={feature}>
                <span className="waitc">{`no ${visibleText(feature)}`}</span>
                {`: ${visibleText(reason)}`}
              </li>
            ))}
            {features.length > 0 && <li className="dim">{`Holds: ${features.map(visibleText).join(', ')}`}</li>}
          </ul>
        </details>
      )}
      {refused.length > 0 && (
        <div className="waitc small">{`The worker does not allow ${refused.map(visibleText).join(', ')}`}</div>
      )}
    </>
  );
}
