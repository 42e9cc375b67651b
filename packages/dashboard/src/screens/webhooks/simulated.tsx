import type { SimulatedStart } from '@runyard/contract/webhooks/simulations';
import { visibleText } from '@runyard/contract/wire/visible';
import { Checks } from '../../parts/checks.tsx';
import { Icon } from '../../parts/icon.tsx';
import { JsonView } from '../../parts/json-view.tsx';

/** Shows whether an automation would start a run for an event, and the run, or why it would not. */
export function Simulated({ start }: { start: SimulatedStart }) {
  const { name, matched, would_start: starts, reason, refusals = [], checks, run } = start;
  return (
    <div className="verdict">
      <div className="sum">
        <Icon name={starts ? 'check' : matched ? 'pause' : 'x'} small className={starts ? 'okc' : 'dim'} />
        <span>
          <span className="md">{visibleText(name)}</span>{' '}
          <span className="mut">
            {starts
              ? 'would start a run'
              : matched
                ? `matches: ${visibleText(refusals.join('; '))}`
                : checks === undefined
                  ? visibleText(reason ?? 'does not match')
                  : 'does not match'}
          </span>
        </span>
      </div>
      {checks && <Checks checks={checks} />}
      {run && (
        <details className="card-b">
          <summary className="dim small">The run</summary>
          <JsonView value={run} />
        </details>
      )}
    </div>
  );
}
