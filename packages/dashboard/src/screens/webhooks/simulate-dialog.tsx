import type { SimulateDeliveryResponse } from '@runyard/contract/webhooks/simulations';
import type { WebhookDelivery } from '@runyard/contract/webhooks/webhooks';
import { visibleText } from '@runyard/contract/wire/visible';
import { useId, useState } from 'react';
import { useClient } from '../../api/session.ts';
import { Hint, Note, P, Stack } from '../../parts/blocks.tsx';
import { Button, Input } from '../../parts/controls.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { Field, Form, Select, TextField, textOf } from '../../parts/form.tsx';
import { samples } from './samples.ts';
import { Simulated } from './simulated.tsx';

/** Returns the value of a JSON text. If the text is not JSON, throws an error with a sentence for the person. */
function readPayload(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`The payload is not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/**
 * Shows which runs a delivery would start, without starting them. The delivery is a sample of a provider, a received delivery, or a pasted
 * payload.
 */
export function SimulateDialog({
  params,
  scheme,
  deliveries,
  close,
}: {
  params: { readonly factoryUid: string; readonly webhookUid: string };
  scheme: string | undefined;
  deliveries: readonly WebhookDelivery[];
  close: () => void;
}) {
  const client = useClient();
  const form = useId();
  const fitting = samples.filter((each) => each.scheme === undefined || scheme === undefined || each.scheme === scheme);
  const [source, setSource] = useState('sample 0');
  const sample = fitting.find((_, index) => source === `sample ${index}`);
  const [text, setText] = useState(() => JSON.stringify(fitting[0]?.payload ?? {}, null, 2));
  const [event, setEvent] = useState(fitting[0]?.event ?? '');
  const [result, setResult] = useState<SimulateDeliveryResponse | undefined>();
  const isStored = deliveries.some(({ delivery_id: id }) => id === source);
  const choose = (chosen: string) => {
    setSource(chosen);
    setResult(undefined);
    const next = fitting.find((_, index) => chosen === `sample ${index}`);
    if (next === undefined) return;
    setText(JSON.stringify(next.payload, null, 2));
    setEvent(next.event ?? '');
  };
  const simulate = async (data: FormData) => {
    const name = textOf(data, 'event');
    const body = isStored
      ? { delivery_id: source }
      : { payload: readPayload(text), ...(name === undefined ? {} : { event: name }) };
    setResult(await client.simulateDelivery({ params, body }));
  };
  return (
    <Dialog
      title="Simulate a delivery"
      close={close}
      footer={
        <>
          <Hint grow>Starts and stores nothing.</Hint>
          <Button onClick={close}>Close</Button>
          <Button type="submit" form={form} kind="primary">
            Simulate
          </Button>
        </>
      }
    >
      <Form id={form} send={simulate}>
        <Field label="Event" path="delivery_id">
          {(control) => (
            <Select
              {...control}
              value={source}
              onChange={({ target }) => choose(target.value)}
              options={[
                ...fitting.map(({ name }, index) => [`sample ${index}`, name] as const),
                ...deliveries.map(
                  ({ delivery_id: id, event: named, received_at: at }) =>
                    [id, `${visibleText(named ?? 'event')}, ${new Date(at).toLocaleString()}`] as const,
                ),
                ['pasted', 'A payload of your own'] as const,
              ]}
            />
          )}
        </Field>
        {!isStored && (
          <>
            <TextField
              label="Name of the event"
              path="event"
              hint="As the header of the sender names it. Absent: no header."
              value={event}
              onChange={({ target }) => setEvent(target.value)}
            />
            <Field label="Payload" path="payload">
              {(control) => (
                <Input
                  {...control}
                  as="textarea"
                  mono
                  rows={9}
                  spellCheck={false}
                  value={text}
                  onChange={({ target }) => {
                    setText(target.value);
                    if (sample !== undefined) setSource('pasted');
                  }}
                />
              )}
            </Field>
          </>
        )}
      </Form>
      {result && <Result result={result} />}
    </Dialog>
  );
}

function Result({ result }: { result: SimulateDeliveryResponse }) {
  return (
    <Stack as="section" gap={2} aria-label="Result" role="status">
      {!result.would_accept && (
        <Note as="p" tone="wait">
          The webhook is off: its sender would get 404.
        </Note>
      )}
      {result.automations.length === 0 && <P tone="dim">No automation selects this webhook.</P>}
      {result.automations.map((start) => (
        <Simulated key={start.automation_id} start={start} />
      ))}
    </Stack>
  );
}
