import type { SimulatedStart } from '@runyard/contract/webhooks/simulations';
import { visibleText } from '@runyard/contract/wire/visible';
import { CardBody, Text } from '../../parts/blocks.tsx';
import { Checks, Verdict, VerdictHead } from '../../parts/checks.tsx';
import { Icon } from '../../parts/icon.tsx';
import { JsonView } from '../../parts/json-view.tsx';

/** Shows whether an automation would start a run for an event, and the run, or why it would not. */
export function Simulated({ start }: { start: SimulatedStart }) {
  const { name, matched, would_start: starts, reason, refusals = [], checks, run } = start;
  return (
    <Verdict>
      <VerdictHead>
        <Icon name={starts ? 'check' : matched ? 'pause' : 'x'} small tone={starts ? 'good' : 'dim'} />
        <span>
          <Text medium>{visibleText(name)}</Text>{' '}
          <Text tone="muted">
            {starts
              ? 'would start a run'
              : matched
                ? `matches: ${visibleText(refusals.join('; '))}`
                : checks === undefined
                  ? visibleText(reason ?? 'does not match')
                  : 'does not match'}
          </Text>
        </span>
      </VerdictHead>
      {checks && <Checks checks={checks} />}
      {run && (
        <CardBody as="details">
          <Text as="summary" tone="dim" small>
            The run
          </Text>
          <JsonView value={run} />
        </CardBody>
      )}
    </Verdict>
  );
}
