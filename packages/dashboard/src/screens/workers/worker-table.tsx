import { visibleText } from '@runyard/contract/wire/visible';
import type { ConnectedWorker, WorkerConnection } from '@runyard/contract/workers/workers';
import { Fragment, useId, useState } from 'react';
import { countText, numberText, sizeText } from '../../parts/format.ts';
import { Meter } from '../../parts/meter.tsx';
import { Ago } from '../../parts/time.tsx';

/**
 * The page warns if the free share of a file system is below `littleShare` or the free space is below `littleBytes`, because only a
 * few sandboxes fit into so little space.
 */
const littleShare = 0.05;
const littleBytes = 2 * 1024 ** 3;

/** Lists the connections of workers, grouped by the name of the worker. */
export function WorkerTable({ label, workers }: { label: string; workers: readonly ConnectedWorker[] }) {
  return (
    <div className="card">
      <table className="tbl in-card" aria-label={label}>
        <thead>
          <tr>
            <th>Worker</th>
            <th className="w200">Isolation</th>
            <th className="w140">Slots in use</th>
            <th className="w108">Free disk</th>
            <th className="w92">Version</th>
            <th className="w108">Connected</th>
          </tr>
        </thead>
        {workers.map((worker) => (
          <tbody key={worker.worker_host}>
            {worker.connections.map((connection, index) => (
              <Row
                // A connection has no id in this list, so the key is the time of connecting and the position.
                key={`${connection.connected_at} ${index}`}
                name={worker.worker_host}
                connection={connection}
                isFirst={index === 0}
              />
            ))}
            {worker.connection_count > worker.connections.length && (
              <tr>
                <td colSpan={6} className="dim">
                  {`and ${countText(worker.connection_count - worker.connections.length, 'connection')} more`}
                </td>
              </tr>
            )}
          </tbody>
        ))}
      </table>
    </div>
  );
}

function Row({ name, connection, isFirst }: { name: string; connection: WorkerConnection; isFirst: boolean }) {
  const {
    backend,
    features,
    missing_features: missing,
    slots,
    version,
    draining,
    problem,
    connected_at: connectedAt,
  } = connection;
  const [isOpen, setOpen] = useState(false);
  const details = useId();
  return (
    <Fragment>
      <tr>
        <td className="md">
          <span className="row">
            <span className={`dot ${problem ? 'bad' : draining ? 'off' : 'ok'}`} aria-hidden="true" />
            <span className={`cut ${isFirst ? '' : 'dim'}`}>{visibleText(name)}</span>
            {draining && (
              <span className="tag wait" title="It takes no new runs, and ends with its last one">
                draining
              </span>
            )}
            {problem && <span className="tag bad">takes no runs</span>}
          </span>
          {problem && <p className="dim">{visibleText(problem)}</p>}
        </td>
        <td>
          <span className="row">
            <Backend backend={backend} />
            {backend !== undefined && features.length + missing.length > 0 && (
              <button
                type="button"
                className="btn ghost sm"
                aria-expanded={isOpen}
                aria-controls={details}
                onClick={() => setOpen(!isOpen)}
              >
                {missing.length === 0 ? 'all features' : `${missing.length} missing`}
              </button>
            )}
          </span>
        </td>
        <td>
          <Slots {...slots} />
        </td>
        <td>
          <Disk disk={connection.disk} />
        </td>
        <td>{version === undefined ? <span className="dim">not known</span> : visibleText(version)}</td>
        <td>
          <Ago time={connectedAt} />
        </td>
      </tr>
      {isOpen && (
        <tr id={details}>
          <td colSpan={6}>
            <dl className="kv far whole-value">
              <dt>Holds</dt>
              <dd>{features.length === 0 ? 'nothing' : features.map(visibleText).join(', ')}</dd>
              {missing.map(({ feature, reason }) => (
                <Fragment key={feature}>
                  <dt className="waitc">{`no ${visibleText(feature)}`}</dt>
                  <dd>{visibleText(reason)}</dd>
                </Fragment>
              ))}
              <dt>Last sign of life</dt>
              <dd>
                <Ago time={connection.last_seen_at} />
              </dd>
            </dl>
          </td>
        </tr>
      )}
    </Fragment>
  );
}

function Backend({ backend }: { backend: string | undefined }) {
  if (backend === undefined) return <span className="dim">not known</span>;
  if (backend === 'none') return <span className="tag bad">no isolation</span>;
  return <span>{visibleText(backend)}</span>;
}

function Slots({ used, total }: WorkerConnection['slots']) {
  if (total === undefined) return <span>{`${numberText(used)} in use`}</span>;
  return (
    <span className="row">
      <span className="w56">
        <Meter value={used} of={total} label="of the slots are in use" />
      </span>
      {`${numberText(used)} of ${numberText(total)}`}
    </span>
  );
}

function Disk({ disk }: { disk: WorkerConnection['disk'] }) {
  if (disk === undefined) return <span className="dim">not known</span>;
  const isLittle = disk.free_bytes < littleBytes || disk.free_bytes < littleShare * disk.total_bytes;
  return (
    <span className={isLittle ? 'badc' : ''} title={`of ${sizeText(disk.total_bytes)}`}>
      {sizeText(disk.free_bytes)}
      {isLittle && ', little'}
    </span>
  );
}
