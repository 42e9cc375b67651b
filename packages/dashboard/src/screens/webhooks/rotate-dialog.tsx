import type { Webhook } from '@runyard/contract/webhooks/webhooks';
import { useQueryClient } from '@tanstack/react-query';
import { useId, useState } from 'react';
import { failureOf } from '../../api/problem.ts';
import { useClient } from '../../api/session.ts';
import { Row } from '../../parts/blocks.tsx';
import { Button } from '../../parts/controls.tsx';
import { Dialog, SecretOnceDialog } from '../../parts/dialog.tsx';
import { Form, SelectField, TextField, textOf } from '../../parts/form.tsx';
import { showToast } from '../../parts/toast.tsx';
import { newSecretFor, senderOf, senders } from './senders.ts';

/** Replaces the secret of a webhook. The person enters a secret from the sender, or the page generates a secret and shows it once. */
export function RotateDialog({
  webhook,
  params,
  close,
}: {
  webhook: Webhook;
  params: { factoryUid: string; webhookUid: string };
  close: () => void;
}) {
  const client = useClient();
  const queries = useQueryClient();
  const form = useId();
  const [isBusy, setBusy] = useState(false);
  const [fresh, setFresh] = useState<string | undefined>();
  const sender = senderOf(webhook);
  const rotate = async (data: FormData) => {
    const typed = textOf(data, 'secret');
    const secret = typed ?? newSecretFor(sender);
    const rotated = await client.rotateWebhookSecret({
      params,
      body: { grace_seconds: Number(data.get('grace_seconds')), ...(secret === undefined ? {} : { secret }) },
    });
    const shown = typed === undefined ? (secret ?? rotated.secret) : undefined;
    if (shown === undefined) showToast('The new secret is stored');
    try {
      if (data.has('on')) await client.enableWebhook({ params });
    } catch (error) {
      // The secret is already replaced, so the dialog must still show the new one.
      showToast(`The new secret is stored, but the webhook is still off: ${failureOf(error).detail}`);
    }
    void queries.invalidateQueries({ queryKey: ['webhook', webhook.uid] });
    if (shown === undefined) close();
    else setFresh(shown);
  };
  if (fresh !== undefined) return <SecretOnceDialog title="The new secret" value={fresh} close={close} />;
  return (
    <Dialog
      title="Rotate the secret?"
      close={close}
      footer={
        <>
          <Button onClick={close}>Keep the secret</Button>
          <Button type="submit" form={form} kind="danger" disabled={isBusy}>
            Rotate
          </Button>
        </>
      }
    >
      <Form id={form} send={rotate} onBusy={setBusy}>
        <TextField
          label="Secret of the sender"
          path="secret"
          type="password"
          mono
          required={senders[sender].makesSecret === true}
          hint={
            senders[sender].makesSecret
              ? 'This sender makes the secret: paste it.'
              : 'Leave it out to get a new secret, which is shown once.'
          }
        />
        <SelectField
          label="The old secret is accepted"
          path="grace_seconds"
          options={[
            ['3600', 'for one more hour'],
            ['86400', 'for one more day'],
            ['0', 'no more, at once'],
          ]}
        />
        {!webhook.enabled && (
          <Row as="label">
            <input type="checkbox" name="on" defaultChecked />
            Turn the webhook on
          </Row>
        )}
      </Form>
    </Dialog>
  );
}
