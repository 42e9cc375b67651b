/** The denied connections of a run, its pushes, and what it wrote on GitHub. */

import type { RunItem } from '@runyard/contract/runs/runs';
import type { TimelineEvent } from '@runyard/contract/runs/timeline';
import { visibleText } from '@runyard/contract/wire/visible';
import { Count, Hint, Text, TextLink } from '../../parts/blocks.tsx';
import { countText } from '../../parts/format.ts';
import { Icon } from '../../parts/icon.tsx';
import styles from './facts.module.css';

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
    <div className={styles.section}>
      <h2>
        Denied egress <Count>{`${countText(counts.size, 'host')}, ${countText(tries, 'try', 'tries')}`}</Count>
      </h2>
      <Text as="ul" small className={styles.files}>
        {[...counts].map(([host, count]) => (
          <li key={host}>
            <Icon name="ban" small />
            <Text mono cut>
              {visibleText(host)}
            </Text>
            <Text tone="dim" right>{`×${count}`}</Text>
          </li>
        ))}
      </Text>
      <Hint as="p">
        {message && visibleText(message)}{' '}
        {run.agent_config?.environment_id && (
          <TextLink to="/environments/$uid" params={{ uid: run.agent_config.environment_id }}>
            Edit allowed hosts
          </TextLink>
        )}
      </Hint>
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
    <div className={styles.section}>
      <h2>Pushes</h2>
      <Text as="ul" small className={styles.files}>
        {pushes.map(({ repository, branch, result, reason }, index) => (
          <li key={index} title={reason && visibleText(reason)}>
            <Icon name="git" small />
            <Text mono cut>
              {visibleText(`${repository} ${branch}`)}
            </Text>
            <Text tone={result === 'refused' || result === 'rejected' ? 'bad' : 'good'} right>
              {result}
            </Text>
          </li>
        ))}
      </Text>
    </div>
  );
}

/** Lists what the run wrote on GitHub with its tools. */
export function GithubAnswers({ events }: { events: readonly TimelineEvent[] }) {
  const answers = events.filter(({ event_type: type }) => type === 'github_answered');
  if (answers.length === 0) return null;
  return (
    <div className={styles.section}>
      <h2>Written on GitHub</h2>
      <Text as="ul" small className={styles.files}>
        {answers.map(({ event_uuid: id, payload }) => (
          <li key={id}>
            <Icon name="git" small />
            {typeof payload?.url === 'string' ? (
              <Text as="a" link cut href={payload.url} target="_blank" rel="noreferrer noopener">
                {visibleText(String(payload.tool).replaceAll('_', ' '))}
              </Text>
            ) : (
              <Text>{visibleText(String(payload?.reason))}</Text>
            )}
          </li>
        ))}
      </Text>
    </div>
  );
}
