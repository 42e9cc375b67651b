/** The denied connections of a run, and the pushes of the run. */
import type { RunItem } from '@runyard/contract/runs/runs';
import type { TimelineEvent } from '@runyard/contract/runs/timeline';
import { visibleText } from '@runyard/contract/wire/visible';
import { Link } from '@tanstack/react-router';
import { countText } from '../../parts/format.ts';
import { Icon } from '../../parts/icon.tsx';

/** Lists the hosts to which connections were denied. */
export function Denied({ events, run }: { events: readonly TimelineEvent[]; run: RunItem }) {
  const counts = new Map<string, number>();
  let total: number | undefined;
  let message: string | undefined;
  for (const { event_type: type, payload } of events) {
    if (type !== 'connection_denied' || payload === undefined) continue;
    if (typeof payload.total === 'number') total = payload.total;
    if (typeof payload.message === 'string') message = payload.message;
    if (typeof payload.host !== 'string') continue;
    const host = payload.port === undefined ? payload.host : `${payload.host}:${String(payload.port)}`;
    counts.set(host, (counts.get(host) ?? 0) + 1);
  }
  if (counts.size === 0) return null;
  const tries = total ?? [...counts.values()].reduce((sum, count) => sum + count, 0);
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
          <li key={index} title={reason}>
            <Icon name="git" small />
            <span className="mono cut">{visibleText(`${repository} ${branch}`)}</span>
            <span className={`right ${result === 'refused' || result === 'rejected' ? 'badc' : 'okc'}`}>{result}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}
