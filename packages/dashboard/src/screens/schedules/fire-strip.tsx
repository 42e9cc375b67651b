import type { ScheduleFire } from '@runyard/contract/schedules/schedules';
import { Row, Text } from '../../parts/blocks.tsx';
import chart from '../../parts/chart.module.css';
import { exactText } from '../../parts/format.ts';
import styles from './schedules.module.css';

const slots = 30;
const outcomes = ['started', 'failed', 'skipped', 'waiting'] as const satisfies readonly ScheduleFire['outcome'][];

/** Returns a text with the number of fires for each outcome: `27 started, 3 failed`. A fire is a time at which the schedule was due. */
function countsOf(fires: readonly ScheduleFire[]): string {
  const counts = outcomes.map((outcome) => [fires.filter((fire) => fire.outcome === outcome).length, outcome] as const);
  return counts
    .filter(([count]) => count > 0)
    .map(([count, outcome]) => `${count} ${outcome}`)
    .join(', ');
}

/** Draws the outcomes of the last fires, with the newest fire at the right. `fires` begins with the newest fire. */
export function FireStrip({ fires }: { fires: readonly ScheduleFire[] }) {
  const last = fires.slice(0, slots);
  if (last.length === 0) return <Text tone="dim">no time yet</Text>;
  const empty = slots - last.length;
  return (
    <svg
      className={styles.fires}
      viewBox={`0 0 ${slots * 7} 20`}
      role="img"
      aria-label={
        last.length === 1 ? `The last time: ${countsOf(last)}` : `Last ${last.length} times: ${countsOf(last)}`
      }
    >
      {Array.from({ length: empty }, (_, index) => (
        <rect key={index} x={index * 7 + 1.5} y="15" width="2" height="1" className={chart.line} />
      ))}
      {last.toReversed().map((fire, index) => (
        <g key={fire.id} transform={`translate(${(empty + index) * 7} 0)`}>
          <title>{titleOf(fire)}</title>
          <Mark outcome={fire.outcome} />
        </g>
      ))}
    </svg>
  );
}

const titleOf = ({ outcome, due_at: due, fired_at: fired, reason }: ScheduleFire): string =>
  `${outcome}, ${exactText(Date.parse(due ?? fired))}${reason === undefined ? '' : `: ${reason}`}`;

/** Draws one fire. Each outcome has its own shape and colour. */
function Mark({ outcome }: { outcome: ScheduleFire['outcome'] }) {
  switch (outcome) {
    case 'started':
      return <rect y="4" width="5" height="12" rx="1" className={chart.good} />;
    case 'failed':
      return (
        <>
          <rect y="2" width="5" height="16" rx="1" className={chart.bad} />
          <path d="M.6 8l3.8 4m0-4l-3.8 4" className={chart.surfaceStroke} />
        </>
      );
    case 'skipped':
      return <rect x=".5" y="11.5" width="4" height="4" className={chart.offStroke} />;
    case 'waiting':
      return (
        <>
          <rect x=".5" y="4.5" width="4" height="11" rx="1" className={chart.waitStroke} />
          <rect x=".5" y="10" width="4" height="5.5" className={chart.wait} />
        </>
      );
  }
}

/** Explains the marks that `FireStrip` draws. */
export const FireLegend = () => (
  <Row as="p" tone="muted" small notNarrow right aria-hidden="true">
    {outcomes.map((outcome) => (
      <Row as="span" key={outcome}>
        <svg width="6" height="20" aria-hidden="true">
          <Mark outcome={outcome} />
        </svg>
        {outcome === 'failed' ? 'no run' : outcome}
      </Row>
    ))}
  </Row>
);
