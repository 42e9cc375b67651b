import type { TimelineEvent } from '@runyard/contract/runs/timeline';
import { visibleText } from '@runyard/contract/wire/visible';
import { Hint, Row, Text } from '../../parts/blocks.tsx';
import { Ago } from '../../parts/time.tsx';
import { callerOf } from './entry.ts';
import styles from './facts.module.css';

/** For each event that the history shows its words. */
const words: Partial<Record<TimelineEvent['event_type'], (payload: NonNullable<TimelineEvent['payload']>) => string>> =
  {
    followup_received: ({ answers, mode }) => (answers ? 'Answer' : mode ? `Message, mode ${String(mode)}` : 'Message'),
    followup_edited: () => 'Message edited',
    followup_withdrawn: () => 'Message withdrawn',
    turn_interrupted: () => 'Turn interrupted',
    oz_run_cancelled: () => 'Cancelled',
    execution_retried: () => 'Tried again',
    execution_resumed: () => 'Resumed in another sandbox',
    run_retried: () => 'Repeated by another run',
  };

/** Returns the events of a run that the history shows. */
const historyOf = (events: readonly TimelineEvent[]): readonly TimelineEvent[] =>
  events.filter(({ event_type: type }) => words[type] !== undefined);

/** Lists what people and agents did to the run, and how often it was tried. */
export function History({ events }: { events: readonly TimelineEvent[] }) {
  return (
    <div className={styles.section} data-part="history">
      <h2>Who did what</h2>
      <ul>
        {historyOf(events).map((event) => (
          <li key={event.event_uuid}>
            <Row>
              <Text cut grow>
                {visibleText(
                  [words[event.event_type]?.(event.payload ?? {}), callerOf(event)].filter(Boolean).join(' by '),
                )}
              </Text>
              <Hint>
                <Ago time={event.occurred_at} />
              </Hint>
            </Row>
          </li>
        ))}
      </ul>
    </div>
  );
}
