import { checksOf } from '@runyard/contract/runs/shown-checks';
import type { TimelineEvent } from '@runyard/contract/runs/timeline';
import { visibleText } from '@runyard/contract/wire/visible';
import { Hint, Row, Text, TextLink } from '../../parts/blocks.tsx';
import { durationText } from '../../parts/format.ts';
import { Icon } from '../../parts/icon.tsx';
import styles from './facts.module.css';

/** Lists the checks of a run with their last outcomes. The output of a failed check is unfolded. */
export function RunChecks({ events }: { events: readonly TimelineEvent[] }) {
  return (
    <div className={styles.section} data-part="checks">
      <h2>Checks</h2>
      <ul>
        {checksOf(events).map(({ name, passed, durationMs, why, rounds, runId }) => (
          <li key={name}>
            <Row>
              <Text tone={passed === false ? 'bad' : passed ? 'good' : 'dim'}>
                <Icon name={passed === false ? 'x' : passed ? 'check' : 'clock'} small />
              </Text>
              <Text cut grow>
                {visibleText(name)}
              </Text>
              <Hint>
                {[
                  passed === undefined ? 'runs' : passed ? 'passed' : 'failed',
                  durationMs === undefined ? '' : durationText(durationMs),
                  rounds > 1 ? `round ${rounds}` : '',
                ]
                  .filter(Boolean)
                  .join(', ')}
              </Hint>
              {runId !== undefined && (
                <TextLink to="/runs/$runId" params={{ runId }}>
                  Sandbox
                </TextLink>
              )}
            </Row>
            {why !== '' && (
              <details open={passed === false}>
                <Text as="summary" tone="dim" small>
                  Output
                </Text>
                <pre>{visibleText(why)}</pre>
              </details>
            )}
          </li>
        ))}
      </ul>
    </div>
  );
}
