import type { StreamStatus } from '../api/stream.ts';
import { clockText } from './format.ts';
import { useNow } from './time.tsx';

/** Shows the state of the event stream. If the stream is broken, shows when the page tries again and since when its data is old. */
export function Live({ status }: { status: StreamStatus }) {
  if (status.kind === 'waiting') return <Waiting {...status} />;
  return (
    <span className="live" role="status">
      {status.kind === 'live' && <span className="dot pulse" aria-hidden="true" />}
      {status.kind === 'live' ? 'Live' : 'Connecting'}
    </span>
  );
}

function Waiting({ until, since }: { until: number; since: number }) {
  const now = useNow();
  const seconds = Math.max(0, Math.ceil((until - now) / 1000));
  return (
    <span className="live">
      <span className="dot off" aria-hidden="true" />
      {now - since > 30_000 ? `Offline since ${clockText(since)}` : `Reconnecting in ${seconds} s`}
    </span>
  );
}
