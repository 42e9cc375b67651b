/** The denied connections of a run, and the pushes of the run. */
import type { RunItem } from '@runyard/contract/runs/runs';
import type { TimelineEvent } from '@runyard/contract/runs/timeline';
import { visibleText } from '@runyard/contract/wire/visible';
import { Link } from '@tanstack/react-router';
import { countText } from '../../parts/format.ts';
import { Icon } from '../../parts/icon.tsx';

type Payload = Readonly<Record<string, unknown>>;

/**
 * Returns how often each host was denied, the number of all tries, and the reason of the last denial. An execution reports the first try to
 * reach a host at once. At its end, it reports the counts of all hosts, which replace the first tries.
 */
export function deniedOf(events: readonly Pick<TimelineEvent, 'event_type' | 'execution_id' | 'payload'>[]): {
  readonly counts: ReadonlyMap<string, number>;
  readonly tries: number;
  readonly message: string | undefined;
} {
  const denials = events.filter(({ event_type: type }) => type === 'connection_denied');
  const finals = new Set(
    denials.filter(({ payload }) => payload?.total !== undefined).map((event) => event.execution_id),
  );
  const counts = new Map<string, number>();
  let tries = 0;
  let message: string | undefined;
  const add = ({ host, port, count, message: reason }: Payload) => {
    if (typeof reason === 'string') message = reason;
    if (typeof host !== 'string') return;
    const place = port === undefined || port === 0 ? host : `${host}:${String(port)}`;
    counts.set(place, (counts.get(place) ?? 0) + (typeof count === 'number' ? count : 1));
  };
  for (const { execution_id: execution, payload = {} } of denials) {
    if (typeof payload.total === 'number') tries += payload.total;
    else if (finals.has(execution)) continue;
    else tries += typeof payload.count === 'number' ? payload.count : 1;
    const { connections } = payload;
    for (const each of Array.isArray(connections) ? (connections as Payload[]) : [payload]) add(each);
  }
  return { counts, tries, message };
}

/** Lists the hosts to which connections were denied. */
export function Denied({ events, run }: { events: readonly TimelineEvent[]; run: RunItem }) {
  const { counts, tries, message } = deniedOf(events);
  if (counts.size === 0) return null;
  return (
    <div className="sec">
      <h2>
        Denied egress{' '}
        <span className="n">{`${countText(counts.size, 'host')}, ${countText(tries, 'try', 'tries')}`}</span>
      </h2>
      <ul className="files small">
        {[...counts].map(([host, count]) => (
          <li key={host}>
            <Icon name="ban" small />
            <span className="mono cut">{visibleText(host)}</span>
            <span className="right dim">{`×${count}`}</span>
          </li>
        ))}
      </ul>
      <p className="hint">
        {message && visibleText(message)}{' '}
        {run.agent_config?.environment_id && (
          <Link className="link" to="/environments/$uid" params={{ uid: run.agent_config.environment_id }}>
            Edit allowed hosts
          </Link>
        )}
      </p>
    </div>
  );
}

/** Lists the branches that the run pushed. */
export function Pushes({ events }: { events: readonly TimelineEvent[] }) {
  const pushes = events.flatMap(({ event_type: type, payload }) => {
    if (type !== 'git_push' || payload === undefined) return [];
    const branches = Array.isArray(payload.branches) ? payload.branches : [];
    return branches.map((each: { branch?: unknown; result?: unknown; reason?: unknown }) => ({
      repository: String(payload.repository ?? ''),
      branch: String(each.branch ?? ''),
      result: String(each.result ?? ''),
      reason: typeof each.reason === 'string' ? each.reason : undefined,
    }));
  });
  if (pushes.length === 0) return null;
  return (
    <div className="sec">
      <h2>Pushes</h2>
      <ul className="files small">
        {pushes.map(({ repository, branch, result, reason }, index) => (
          <li key={index} title={reason && visibleText(reason)}>
            <Icon name="git" small />
            <span className="mono cut">{visibleText(`${repository} ${branch}`)}</span>
            <span className={`right ${result === 'refused' || result === 'rejected' ? 'badc' : 'okc'}`}>{result}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}
