import type { Automation, TestFilterResponse } from '@runyard/contract/automations/automations';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQuery } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { useRead } from '../../api/read.ts';
import { useClient } from '../../api/session.ts';
import { Fields, Hint, Stack, Text } from '../../parts/blocks.tsx';
import { Checks, Verdict, VerdictHead } from '../../parts/checks.tsx';
import { FieldGroup, Input } from '../../parts/controls.tsx';
import { Icon } from '../../parts/icon.tsx';
import { JsonView, marksOf } from '../../parts/json-view.tsx';
import { useKeys } from '../../parts/keys.ts';
import { Problem } from '../../parts/problem.tsx';
import { DryRun } from './dry-run.tsx';
import { filterOf, withValue } from './filter-rows.ts';
import { LastDeliveries } from './last-deliveries.tsx';
import type { WebhookDraft } from './triggers.ts';

/** The numbers of deliveries among which the person chooses. The filter is compared with this number of the last deliveries. */
const counts = [20, 100] as const;

/**
 * Compares the filter of a trigger with stored deliveries or a pasted payload while the person edits the filter. A click on a field of the
 * payload makes a condition of the field and its value.
 */
export function FilterTest({
  factoryUid,
  automation,
  draft,
  change,
  result,
  setResult,
}: {
  factoryUid: string;
  automation: Automation | undefined;
  /** Undefined: the automation has no webhook trigger. */
  draft: WebhookDraft | undefined;
  change: (draft: WebhookDraft) => void;
  result: TestFilterResponse | undefined;
  setResult: (result: TestFilterResponse | undefined) => void;
}) {
  const client = useClient();
  const [pasted, setPasted] = useState('');
  const [deliveryId, setDeliveryId] = useState('');
  const { webhookIds = [], rows = [] } = draft ?? {};
  const [webhookUid] = webhookIds;
  const choice = useRef<HTMLSelectElement>(null);
  useKeys([{ key: 't', does: 'Test the filter', run: () => choice.current?.focus() }]);
  const deliveries = useRead(
    ['webhook', webhookUid, 'accepted'],
    async (client) =>
      (
        await client.listWebhookDeliveries({
          params: { factoryUid, webhookUid: webhookUid ?? '' },
          query: { label: 'ACCEPTED', limit: 20 },
        })
      ).deliveries,
    { enabled: webhookUid !== undefined },
  );
  const filter = filterOf(rows);
  const last = counts.find((count) => deliveryId === `last ${count}`);
  const typed = readJson(pasted);
  const stored = useRead(
    ['delivery', deliveryId],
    (client) => client.getWebhookDelivery({ params: { factoryUid, webhookUid: webhookUid ?? '', deliveryId } }),
    { enabled: deliveryId !== '' && last === undefined && webhookUid !== undefined },
  );
  const payload = deliveryId === '' ? typed : last === undefined ? stored.data?.payload : undefined;
  const test = useQuery({
    queryKey: ['test-filter', factoryUid, JSON.stringify(filter), deliveryId, pasted],
    queryFn: async () => {
      return await client.testFilter({
        params: { factoryUid },
        body: { filter, ...(deliveryId === '' ? { payload: typed } : { delivery_id: deliveryId }) },
      });
    },
    enabled: last === undefined && Object.keys(filter).length > 0 && (deliveryId !== '' || typed !== undefined),
    retry: false,
    refetchInterval: false,
    placeholderData: (before) => before,
  });
  const tested = last === undefined ? test.data : undefined;
  useEffect(() => setResult(tested), [tested, setResult]);
  const isWebhook = automation === undefined || draft !== undefined;
  const source =
    deliveryId === ''
      ? typed !== undefined && webhookUid !== undefined
        ? { payload: typed, webhook_uid: webhookUid }
        : undefined
      : last === undefined
        ? { delivery_id: deliveryId }
        : undefined;
  return (
    <>
      {isWebhook && (
        <Fields>
          <h2>Would it fire?</h2>
          <FieldGroup>
            <label htmlFor="stored">Deliveries that came</label>
            <Input
              id="stored"
              ref={choice}
              as="select"
              value={deliveryId}
              onChange={({ target }) => setDeliveryId(target.value)}
            >
              <option value="">none: the payload below</option>
              {webhookUid !== undefined &&
                counts.map((count) => (
                  <option key={count} value={`last ${count}`}>
                    {`the last ${count}`}
                  </option>
                ))}
              {(deliveries.data ?? []).map(({ delivery_id: id, event, received_at: at }) => (
                <option key={id} value={id}>
                  {`${visibleText(event ?? 'event')}, ${new Date(at).toLocaleString()}`}
                </option>
              ))}
            </Input>
          </FieldGroup>
          {deliveryId === '' && (
            <FieldGroup>
              <label htmlFor="payload">A payload</label>
              <Input
                id="payload"
                as="textarea"
                mono
                rows={8}
                placeholder='{"action": "opened"}'
                value={pasted}
                aria-invalid={pasted.trim() !== '' && typed === undefined}
                onChange={({ target }) => setPasted(target.value)}
              />
              {pasted.trim() !== '' && typed === undefined && (
                <Text tone="bad" small>
                  This is not JSON.
                </Text>
              )}
            </FieldGroup>
          )}
          <Problem error={last === undefined ? test.error : undefined} />
          {last !== undefined && webhookUid !== undefined && (
            <LastDeliveries params={{ factoryUid, webhookUid }} filter={filter} count={last} />
          )}
          {result && (
            <Verdict role="status">
              <VerdictHead>
                <Icon name={result.would_trigger ? 'check' : 'x'} small tone={result.would_trigger ? 'good' : 'bad'} />
                <Text medium>{result.would_trigger ? 'It matches and would start a run' : 'It does not match'}</Text>
              </VerdictHead>
              <Checks checks={result.checks} />
            </Verdict>
          )}
          {payload !== undefined && (
            <Stack as="section" gap={2} aria-label="Fields of the payload">
              <Hint as="p">
                Click a value to make it a condition. Blue values meet the conditions; amber values do not.
              </Hint>
              <JsonView
                value={payload}
                marks={marksOf(result?.checks ?? [])}
                selects="Add the condition"
                {...(draft?.rows
                  ? {
                      onSelect: (path: string, value: unknown) =>
                        change({ ...draft, rows: withValue(rows, path, value) }),
                    }
                  : {})}
              />
            </Stack>
          )}
          {Object.keys(filter).length === 0 && (
            <Hint as="p">Without conditions each event of the webhooks starts a run.</Hint>
          )}
        </Fields>
      )}
      {automation && <DryRun factoryUid={factoryUid} automation={automation} source={source} />}
    </>
  );
}

/** Returns the value of a JSON text; undefined if the text is not JSON. */
function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
