import { isTerminal } from '@runyard/contract/runs/run-states';
import type { RunItem } from '@runyard/contract/runs/runs';
import type { TimelineEvent } from '@runyard/contract/runs/timeline';
import { Row, Text } from '../../parts/blocks.tsx';
import chart from '../../parts/chart.module.css';
import { durationText, secondsText } from '../../parts/format.ts';
import { useNow } from '../../parts/time.tsx';
import styles from './run.module.css';

/** A period in the life of a run, such as the setup. */
export interface Span {
  readonly kind: 'queued' | 'setup' | 'agent' | 'waiting' | 'failed';
  readonly from: number;
  /** End of the period; undefined if the period has not ended. */
  readonly to: number | undefined;
  readonly words: string;
}

const begins: Partial<Record<TimelineEvent['event_type'], Span['kind']>> = {
  oz_run_created: 'queued',
  execution_retried: 'queued',
  execution_resumed: 'queued',
  oz_run_claimed: 'setup',
  agent_started: 'agent',
  oz_run_blocked: 'waiting',
};
const ends: readonly TimelineEvent['event_type'][] = [
  'oz_run_done',
  'oz_run_failed',
  'oz_run_errored',
  'oz_run_cancelled',
  'vm_shutdown',
];
const names: Readonly<Record<Span['kind'], string>> = {
  queued: 'queued',
  setup: 'setup',
  agent: 'agent',
  waiting: 'waited for an answer',
  failed: 'failed',
};

/** Returns the periods of a run's life, from the events of its timeline. Times are in milliseconds. */
export function spansOf(events: readonly TimelineEvent[]): Span[] {
  const spans: Span[] = [];
  let open: { kind: Span['kind']; from: number } | undefined;
  const close = (to: number) => {
    if (open && to > open.from)
      spans.push({ ...open, to, words: `${names[open.kind]} ${durationText(to - open.from)}` });
    open = undefined;
  };
  for (const { event_type: type, occurred_at, payload } of events) {
    const at = Date.parse(occurred_at);
    const kind = begins[type];
    if (kind !== undefined) {
      close(at);
      open = { kind, from: at };
    } else if (type === 'followup_received' && open?.kind === 'waiting') {
      close(at);
      open = { kind: 'agent', from: at };
    } else if (type === 'followup_received' && open === undefined) open = { kind: 'queued', from: at };
    else if (type === 'setup_step_finished' && typeof payload?.error === 'string') {
      const ms = typeof payload.duration_ms === 'number' ? payload.duration_ms : 0;
      close(at - ms);
      spans.push({ kind: 'failed', from: at - ms, to: at, words: `failed in ${String(payload.name ?? 'setup')}` });
      // Do not end a wait for a person when the sandbox ends, because the run continues to wait.
    } else if (ends.includes(type) && !(type === 'vm_shutdown' && open?.kind === 'waiting')) close(at);
  }
  if (open) spans.push({ ...open, to: undefined, words: names[open.kind] });
  return spans;
}

const fills: Readonly<Record<Span['kind'], string | undefined>> = {
  queued: chart.line,
  setup: chart.ink3,
  agent: chart.ramp3,
  waiting: undefined,
  failed: chart.bad,
};

/** Returns the total time of all spans of a kind, in milliseconds. */
const totalOf = (spans: readonly Span[], kind: Span['kind'], now: number): number =>
  spans.filter((span) => span.kind === kind).reduce((sum, { from, to }) => sum + (to ?? now) - from, 0);

/**
 * Shows the periods of a run as a bar. The setup is grey, finished work is pale blue, current work is solid blue, and waits are
 * hatched amber. Red marks show denied connections.
 */
export function TimelineBar({ run, events }: { run: RunItem; events: readonly TimelineEvent[] }) {
  const tick = useNow();
  const spans = spansOf(events);
  const denied = events
    .filter(({ event_type: type, payload }) => type === 'connection_denied' && payload?.total === undefined)
    .map((event) => Date.parse(event.occurred_at));
  const first = spans[0]?.from ?? Date.parse(run.created_at);
  const now = isTerminal(run.state)
    ? Math.max(...spans.map(({ to, from }) => to ?? from), first + 1)
    : Math.max(tick, first + 1);
  const x = (time: number): number => Math.max(0, Math.min(1000, ((time - first) / (now - first)) * 1000));
  const kinds = (['queued', 'setup', 'agent', 'waiting'] as const).flatMap((kind) => {
    const total = totalOf(spans, kind, now);
    return total > 0 ? [{ kind, words: `${kind === 'waiting' ? 'waited' : kind} ${durationText(total)}` }] : [];
  });
  const failed = spans.find(({ kind }) => kind === 'failed');
  const label = `Timeline: ${spans.map(({ words, to, from }) => (to === undefined ? `now ${words} for ${durationText(now - from)}` : words)).join(', ')}.`;
  return (
    <div className={styles.bar}>
      <svg viewBox="0 0 1000 12" preserveAspectRatio="none" role="img" aria-label={label}>
        <defs>
          <pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
            <rect width="6" height="6" className={chart.off} />
            <rect width="2.4" height="6" className={chart.wait} />
          </pattern>
        </defs>
        {spans.map(({ kind, from, to, words }, index) => (
          <rect
            key={index}
            x={x(from)}
            y="3"
            width={Math.max(2, x(to ?? now) - x(from) - 2)}
            height="6"
            rx="1.5"
            className={kind === 'agent' && to === undefined ? chart.accent : fills[kind]}
            {...(kind === 'waiting' ? { fill: 'url(#hatch)' } : {})}
          >
            <title>{words}</title>
          </rect>
        ))}
        {denied.map((time, index) => (
          <path key={index} d={`M${x(time)} 0v12`} className={chart.badStroke} strokeWidth="2" />
        ))}
      </svg>
      <Row tone="dim" small>
        <Text notNarrow>{secondsText(first)}</Text>
        {kinds.map(({ kind, words }) => (
          <Text key={kind} small notNarrow={kind === 'queued' || kind === 'setup'}>
            {words}
          </Text>
        ))}
        {failed && <Text tone="bad">{failed.words}</Text>}
        {denied.length > 0 && <Text tone="bad">{`${denied.length} denied`}</Text>}
        <Text right>{durationText(now - first)}</Text>
      </Row>
    </div>
  );
}
