import type { StreamStatus } from '../api/stream.ts';
import { Dot } from './blocks.tsx';
import { clockText } from './format.ts';
import styles from './live.module.css';
import { useNow } from './time.tsx';

/** Shows the state of the event stream. If the stream is broken, shows when the page tries again and since when its data is old. */
export function Live({ status }: { status: StreamStatus }) {
  if (status.kind === 'waiting') return <Waiting {...status} />;
  return (
    <span className={styles.live} data-part="live" role="status">
      {status.kind === 'live' && <Dot />}
      {status.kind === 'live' ? 'Live' : 'Connecting'}
    </span>
  );
}

function Waiting({ until, since }: { until: number; since: number }) {
  const now = useNow();
  const seconds = Math.max(0, Math.ceil((until - now) / 1000));
  return (
    <span className={styles.live} data-part="live">
      <Dot tone="off" />
      {now - since > 30_000 ? `Offline since ${clockText(since)}` : `Reconnecting in ${seconds} s`}
    </span>
  );
}
