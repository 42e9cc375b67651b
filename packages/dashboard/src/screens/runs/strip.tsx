import type { RunCounts, RunStateCounts } from '@runyard/contract/runs/run-counts';
import { isTerminal, type RunState } from '@runyard/contract/runs/run-states';
import { useQueryClient } from '@tanstack/react-query';
import { useRead } from '../../api/read.ts';
import { useSession } from '../../api/session.ts';
import { useTeamEvents } from '../../api/stream.ts';
import type { Search } from '../../frame/search.ts';
import { Hint, Text } from '../../parts/blocks.tsx';
import chart from '../../parts/chart.module.css';
import { clockText, countText, dollarText, numberText } from '../../parts/format.ts';
import type { Tone } from '../../parts/look.ts';
import { useSoon } from '../../parts/soon.ts';
import styles from './runs.module.css';
import { filtersOf } from './views.ts';

const hours = 24;
const stepMs = 15 * 60_000;
/** All events that arrive within this number of milliseconds cause only one request for the counts. */
const gatherMs = 5_000;

/** Returns the time at which the chart begins: 24 hours ago, rounded up to the beginning of a step of the chart. */
const beginning = (now: number): number => Math.ceil((now - hours * 3_600_000) / stepMs) * stepMs;

const sum = (counts: RunStateCounts, of: (state: RunState) => boolean): number =>
  Object.entries(counts).reduce((total, [state, count]) => total + (of(state as RunState) ? (count ?? 0) : 0), 0);

/**
 * Shows the activity of the last 24 hours: the numbers of runs and failures, and the cost. Counts only runs that the filters of the list
 * select.
 */
export function Strip({ search }: { search: Search }) {
  const { team } = useSession();
  const {
    state: _state,
    created_after: _after,
    created_before: _before,
    updated_after: _changed,
    ...filters
  } = filtersOf(search);
  const queries = useQueryClient();
  const key = ['counts', team.uid, 'strip', filters];
  const { data } = useRead(
    key,
    (client) =>
      client.countRuns({
        query: { ...filters, created_after: new Date(beginning(Date.now())).toISOString(), step: '15m' },
      }),
    { refetchInterval: 60_000, placeholderData: (before) => before },
  );
  const countSoon = useSoon(() => void queries.invalidateQueries({ queryKey: key }), gatherMs);
  useTeamEvents(countSoon, countSoon);
  if (data === undefined) return <section className={`${styles.strip} ${styles.stripEmpty}`} aria-label="Activity" />;
  const ended = sum(data.states, isTerminal);
  const succeeded = data.states.SUCCEEDED ?? 0;
  const failed = data.states.FAILED ?? 0;
  const errors = data.states.ERROR ?? 0;
  return (
    <section className={styles.strip} aria-label="Activity">
      <Bars counts={data} />
      <div className={styles.figures}>
        <Figure value={`${numberText(data.total)}${data.is_exact ? '' : '+'}`} label="runs in 24 h" />
        {ended > 0 && <Figure value={`${Math.round((succeeded / ended) * 100)}%`} label="succeeded" />}
        <Figure value={numberText(failed)} label="failed" tone={failed > 0 ? 'bad' : undefined} />
        <Figure value={numberText(errors)} label="errors" tone={errors > 0 ? 'error' : undefined} />
        <Figure value={dollarText(data.spent_usd)} label="models" />
      </div>
    </section>
  );
}

const Figure = ({ value, label, tone }: { value: string; label: string; tone?: Tone | undefined }) => (
  <div>
    <Text as="b" tone={tone}>
      {value}
    </Text>
    <Hint>{label}</Hint>
  </div>
);

/** Height of the chart, and the position of its base line. */
const height = 30;

function Bars({ counts }: { counts: RunCounts }) {
  const steps = counts.steps ?? [];
  const most = Math.max(1, ...steps.map(({ states }) => sum(states, () => true)));
  const scale = (count: number): number => (count === 0 ? 0 : Math.max(2, (count / most) * (height - 4)));
  const troubled = steps.filter(({ states }) => (states.FAILED ?? 0) + (states.ERROR ?? 0) > 0);
  const words =
    troubled.length === 0
      ? 'None failed.'
      : `Failures or errors around ${troubled
          .slice(-5)
          .map(({ started_at: at }) => clockText(Date.parse(at)))
          .join(', ')}.`;
  return (
    <div>
      <svg
        viewBox={`0 0 ${steps.length * 10} 34`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`Runs of the last 24 hours in steps of 15 minutes. ${countText(counts.total, 'run')}. ${words}`}
      >
        {steps.map(({ started_at: at, states }, index) => {
          const parts = [
            {
              className: chart.line,
              count: sum(states, (state) => isTerminal(state) && state !== 'FAILED' && state !== 'ERROR'),
            },
            { className: chart.bad, count: states.FAILED ?? 0 },
            { className: chart.error, count: states.ERROR ?? 0 },
            { className: chart.accent, count: sum(states, (state) => !isTerminal(state)) },
          ];
          let y = height;
          return (
            <g key={at}>
              {parts.map(({ className, count }) => {
                const tall = scale(count);
                y -= tall;
                return (
                  tall > 0 && (
                    <rect key={className} x={index * 10} y={y} width="8" height={tall} rx="1" className={className} />
                  )
                );
              })}
            </g>
          );
        })}
        <path d={`M0 32.5h${steps.length * 10}`} className={chart.lineStroke} />
      </svg>
      <div className={styles.axis} aria-hidden="true">
        {[24, 18, 12, 6].map((back) => (
          <span key={back}>{clockText(Date.now() - back * 3_600_000)}</span>
        ))}
        <span>now</span>
      </div>
    </div>
  );
}
