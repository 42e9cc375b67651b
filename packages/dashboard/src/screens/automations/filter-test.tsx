import type { TestFilterResponse } from '@runyard/contract/automations/automations';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { useClient } from '../../api/session.ts';
import { Checks } from '../../parts/checks.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Problem } from '../../parts/problem.tsx';
import { type FilterRow, filterOf } from './filter-rows.ts';
import { LastDeliveries } from './last-deliveries.tsx';

/** The numbers of deliveries among which the person chooses. The filter is compared with this number of the last deliveries. */
const counts = [20, 100] as const;

/** Compares the filter with stored deliveries or a pasted payload while the person edits the filter. */
export function FilterTest({
  factoryUid,
  webhookIds,
  rows,
  result,
  setResult,
}: {
  factoryUid: string;
  webhookIds: readonly string[];
  rows: readonly FilterRow[];
  result: TestFilterResponse | undefined;
  setResult: (result: TestFilterResponse | undefined) => void;
}) {
  const client = useClient();
  const [pasted, setPasted] = useState('');
  const [deliveryId, setDeliveryId] = useState('');
  const [webhookUid] = webhookIds;
  const deliveries = useQuery({
    queryKey: ['webhook', webhookUid, 'accepted'],
    queryFn: async () =>
      (
        await client.listWebhookDeliveries({
          params: { factoryUid, webhookUid: webhookUid ?? '' },
          query: { label: 'ACCEPTED', limit: 20 },
        })
      ).deliveries,
    enabled: webhookUid !== undefined,
  });
  const filter = filterOf(rows);
  const last = counts.find((count) => deliveryId === `last ${count}`);
  const payload = readJson(pasted);
  const test = useQuery({
    queryKey: ['test-filter', factoryUid, JSON.stringify(filter), deliveryId, pasted],
    queryFn: async () => {
      return await client.testFilter({
        params: { factoryUid },
        body: { filter, ...(deliveryId === '' ? { payload } : { delivery_id: deliveryId }) },
      });
    },
    enabled: last === undefined && Object.keys(filter).length > 0 && (deliveryId !== '' || payload !== undefined),
    retry: false,
    placeholderData: (before) => before,
  });
  const tested = last === undefined ? test.data : undefined;
  useEffect(() => setResult(tested), [tested, setResult]);
  return (
    <div className="form">
      <h2>Would it fire?</h2>
      <div className="field">
        <label htmlFor="stored">Deliveries that came</label>
        <select id="stored" className="in" value={deliveryId} onChange={({ target }) => setDeliveryId(target.value)}>
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
        </select>
      </div>
      {deliveryId === '' && (
        <div className="field">
          <label htmlFor="payload">A payload</label>
          <textarea
            id="payload"
            className="in mono"
            rows={8}
            placeholder='{"action": "opened"}'
            value={pasted}
            aria-invalid={pasted.trim() !== '' && payload === undefined}
            onChange={({ target }) => setPasted(target.value)}
          />
          {pasted.trim() !== '' && payload === undefined && <span className="small badc">This is not JSON.</span>}
        </div>
      )}
      <Problem error={last === undefined ? test.error : undefined} />
      {last !== undefined && webhookUid !== undefined && (
        <LastDeliveries params={{ factoryUid, webhookUid }} filter={filter} count={last} />
      )}
      {result && (
        <div className="verdict" role="status">
          <div className="sum">
            <Icon name={result.would_trigger ? 'check' : 'x'} small className={result.would_trigger ? 'okc' : 'badc'} />
            <span className="md">
              {result.would_trigger ? 'It matches and would start a run' : 'It does not match'}
            </span>
          </div>
          <Checks checks={result.checks} />
        </div>
      )}
      {Object.keys(filter).length === 0 && (
        <p className="hint">Without conditions each event of the webhooks starts a run.</p>
      )}
    </div>
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
