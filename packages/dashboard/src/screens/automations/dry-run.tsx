import type { Automation } from '@runyard/contract/automations/automations';
import type { DryRunRequest, SimulatedStart } from '@runyard/contract/webhooks/simulations';
import { visibleText } from '@runyard/contract/wire/visible';
import { useState } from 'react';
import { useClient, useMay } from '../../api/session.ts';
import { useAttempts } from '../../parts/attempt.ts';
import { Fields, Hint, P, Row } from '../../parts/blocks.tsx';
import { Button } from '../../parts/controls.tsx';
import { Problem } from '../../parts/problem.tsx';
import { Simulated } from '../webhooks/simulated.tsx';

/**
 * Shows the run that the saved automation would start now, without starting it: for the chosen delivery or payload, or for a time of one of
 * its schedules. If no run would start, shows the reason.
 */
export function DryRun({
  factoryUid,
  automation,
  source,
}: {
  factoryUid: string;
  automation: Automation;
  /** The chosen delivery or payload; undefined if none is chosen. */
  source: DryRunRequest | undefined;
}) {
  const client = useClient();
  const may = useMay('member');
  const { error, isBusy, attempt } = useAttempts();
  const [result, setResult] = useState<SimulatedStart | undefined>();
  const run = (body: DryRunRequest) =>
    attempt(async () => {
      setResult(undefined);
      setResult(await client.dryRunAutomation({ params: { factoryUid, automationUid: automation.uid }, body }));
    });
  const button = (label: string, body: DryRunRequest) => (
    <Button key={label} icon="play" disabled={!may || isBusy} onClick={() => void run(body)}>
      {label}
    </Button>
  );
  return (
    <Fields as="section" aria-label="Dry run">
      <h2>Dry run</h2>
      <Hint as="p">Shows the run that the saved automation would start now. It starts and stores nothing.</Hint>
      <Row wrap>
        {source && button('With the event above', source)}
        {(automation.schedules ?? []).map(({ name = '' }) =>
          button(name === '' ? 'At a time of its schedule' : `At a time of ${visibleText(name)}`, {
            schedule_name: name,
          }),
        )}
        {source === undefined && automation.schedules === undefined && (
          <P tone="dim">Choose a delivery above, or paste a payload.</P>
        )}
      </Row>
      <Problem error={error} />
      {result && (
        <div role="status">
          <Simulated start={result} />
        </div>
      )}
    </Fields>
  );
}
