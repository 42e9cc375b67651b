import { visibleText } from '@runyard/contract/wire/visible';
import type { ConnectedWorker, WorkerConnection } from '@runyard/contract/workers/workers';
import { Fragment, useId, useState } from 'react';
import { Badge, Dot, Facts, P, Row, Text } from '../../parts/blocks.tsx';
import { Button } from '../../parts/controls.tsx';
import { countText, numberText, sizeText } from '../../parts/format.ts';
import { Meter } from '../../parts/meter.tsx';
import { Cell, Table } from '../../parts/table.tsx';
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
    <Table
      aria-label={label}
      grouped
      columns={[
        { name: 'Worker' },
        { name: 'Isolation', width: 200 },
        { name: 'Slots in use', width: 140 },
        { name: 'Free disk', width: 108 },
        { name: 'Version', width: 92 },
        { name: 'Connected', width: 108 },
      ]}
    >
      {workers.map((worker) => (
        <tbody key={worker.worker_host}>
          {worker.connections.map((connection, index) => (
            <ConnectionRows
              // A connection has no id in this list, so the key is the time of connecting and the position.
              key={`${connection.connected_at} ${index}`}
              name={worker.worker_host}
              connection={connection}
              isFirst={index === 0}
            />
          ))}
          {worker.connection_count > worker.connections.length && (
            <tr>
              <Cell colSpan={6} tone="dim">
                {`and ${countText(worker.connection_count - worker.connections.length, 'connection')} more`}
              </Cell>
            </tr>
          )}
        </tbody>
      ))}
    </Table>
  );
}

function ConnectionRows({
  name,
  connection,
  isFirst,
}: {
  name: string;
  connection: WorkerConnection;
  isFirst: boolean;
}) {
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
        <Cell medium>
          <Row as="span">
            <Dot tone={problem ? 'bad' : draining ? 'off' : 'good'} />
            <Text tone={isFirst ? undefined : 'dim'} cut>
              {visibleText(name)}
            </Text>
            {draining && (
              <Badge tone="wait" title="It takes no new runs, and ends with its last one">
                draining
              </Badge>
            )}
            {problem && <Badge tone="bad">takes no runs</Badge>}
          </Row>
          {problem && <P tone="dim">{visibleText(problem)}</P>}
        </Cell>
        <td>
          <Row as="span">
            <Backend backend={backend} />
            {backend !== undefined && features.length + missing.length > 0 && (
              <Button
                kind="ghost"
                small
                aria-expanded={isOpen}
                aria-controls={details}
                onClick={() => setOpen(!isOpen)}
              >
                {missing.length === 0 ? 'all features' : `${missing.length} missing`}
              </Button>
            )}
          </Row>
        </td>
        <td>
          <Slots {...slots} />
        </td>
        <td>
          <Disk disk={connection.disk} />
        </td>
        <td>{version === undefined ? <Text tone="dim">not known</Text> : visibleText(version)}</td>
        <td>
          <Ago time={connectedAt} />
        </td>
      </tr>
      {isOpen && (
        <tr id={details}>
          <td colSpan={6}>
            <Facts far whole>
              <dt>Holds</dt>
              <dd>{features.length === 0 ? 'nothing' : features.map(visibleText).join(', ')}</dd>
              {missing.map(({ feature, reason }) => (
                <Fragment key={feature}>
                  <Text as="dt" tone="wait">{`no ${visibleText(feature)}`}</Text>
                  <dd>{visibleText(reason)}</dd>
                </Fragment>
              ))}
              <dt>Last sign of life</dt>
              <dd>
                <Ago time={connection.last_seen_at} />
              </dd>
            </Facts>
          </td>
        </tr>
      )}
    </Fragment>
  );
}

function Backend({ backend }: { backend: string | undefined }) {
  if (backend === undefined) return <Text tone="dim">not known</Text>;
  if (backend === 'none') return <Badge tone="bad">no isolation</Badge>;
  return <span>{visibleText(backend)}</span>;
}

function Slots({ used, total }: WorkerConnection['slots']) {
  if (total === undefined) return <span>{`${numberText(used)} in use`}</span>;
  return (
    <Row as="span">
      <Text style={{ width: 56 }}>
        <Meter value={used} of={total} label="of the slots are in use" />
      </Text>
      {`${numberText(used)} of ${numberText(total)}`}
    </Row>
  );
}

function Disk({ disk }: { disk: WorkerConnection['disk'] }) {
  if (disk === undefined) return <Text tone="dim">not known</Text>;
  const isLittle = disk.free_bytes < littleBytes || disk.free_bytes < littleShare * disk.total_bytes;
  return (
    <Text tone={isLittle ? 'bad' : undefined} title={`of ${sizeText(disk.total_bytes)}`}>
      {sizeText(disk.free_bytes)}
      {isLittle && ', little'}
    </Text>
  );
}
