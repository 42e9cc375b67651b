import type { WebhookWithSecret } from '@runyard/contract/webhooks/webhooks';
import { signatureAlgorithms, signatureEncodings, signatureSchemeNames } from '@runyard/contract/wire/choices';
import { useQueryClient } from '@tanstack/react-query';
import { useId, useRef, useState } from 'react';
import { useClient } from '../../api/session.ts';
import { P, Two } from '../../parts/blocks.tsx';
import { Button, Input } from '../../parts/controls.tsx';
import { CommandBlock } from '../../parts/copy.tsx';
import { Dialog, SecretOnceDialog } from '../../parts/dialog.tsx';
import { Field, Form, memberOf, type OnceHeaders, SelectField, TextField, textOf } from '../../parts/form.tsx';
import { isSenderName, newSecretFor, proofOf, type SenderName, senders } from './senders.ts';

/** Members of the signature that a person describes for the scheme `hmac`. */
const signatureMembers = ['header', 'prefix', 'signed', 'timestamp_header', 'id_header'] as const;

/** Returns the description of the signature that the form contains. */
function signatureOf(data: FormData) {
  const texts = signatureMembers.flatMap((name) => {
    const text = textOf(data, `signature.${name}`);
    return text === undefined ? [] : [[name, text] as const];
  });
  const algorithm = signatureAlgorithms.find((name) => name === data.get('signature.algorithm'));
  const encoding = signatureEncodings.find((name) => name === data.get('signature.encoding'));
  return { header: '', ...Object.fromEntries(texts), algorithm, encoding };
}

/** Creates a webhook, and shows its address and its secret once. */
export function NewWebhook({ factoryUid, close }: { factoryUid: string; close: () => void }) {
  const client = useClient();
  const queries = useQueryClient();
  const form = useId();
  const [sender, setSender] = useState<SenderName>('github');
  const [isBusy, setBusy] = useState(false);
  const [made, setMade] = useState<WebhookWithSecret | undefined>();
  const { setup, makesSecret = false } = senders[sender];
  // A repeated request has the same idempotency key, so it must also have the same secret.
  const newSecrets = useRef<{ readonly [Name in SenderName]?: string | undefined }>({});
  const create = async (data: FormData, headers: OnceHeaders) => {
    const typed = textOf(data, 'secret');
    newSecrets.current = { [sender]: newSecretFor(sender), ...newSecrets.current };
    const secret = typed ?? newSecrets.current[sender];
    const webhook = await client.createWebhook({
      params: { factoryUid },
      body: {
        name: textOf(data, 'name') ?? '',
        ...proofOf(sender),
        ...(sender === 'hmac' ? { signature: signatureOf(data), ...memberOf(data, 'event_header') } : {}),
        ...(secret === undefined ? {} : { secret }),
      },
      headers: { ...headers },
    });
    await queries.invalidateQueries({ queryKey: ['factory', factoryUid] });
    setMade(typed === undefined && secret !== undefined ? { ...webhook, secret } : webhook);
  };
  if (made?.secret !== undefined)
    return (
      <SecretOnceDialog title={`The secret of ${made.name}`} value={made.secret} close={close}>
        <P medium>Address</P>
        <CommandBlock command={made.url} what="Copy address" />
        <P tone="muted">{setup}</P>
      </SecretOnceDialog>
    );
  if (made !== undefined)
    return (
      <Dialog
        title={made.enabled ? `${made.name} is ready` : `${made.name} is off until it has a secret`}
        close={close}
        footer={<Button onClick={close}>Done</Button>}
      >
        <CommandBlock command={made.url} what="Copy address" />
        <P tone="muted">{setup}</P>
        {!made.enabled && (
          <P tone="muted">To store the secret, open the webhook and choose Rotate secret. This also turns it on.</P>
        )}
      </Dialog>
    );
  return (
    <Dialog
      title="New webhook"
      close={close}
      footer={
        <>
          <Button onClick={close}>Back</Button>
          <Button type="submit" form={form} kind="primary" disabled={isBusy}>
            Create webhook
          </Button>
        </>
      }
    >
      <Form id={form} send={create} onBusy={setBusy}>
        <TextField label="Name" path="name" required maxLength={100} placeholder="GitHub" />
        <Field label="Sender" path="signature_scheme" hint={setup}>
          {(control) => (
            <Input
              {...control}
              as="select"
              value={sender}
              onChange={({ target }) => isSenderName(target.value) && setSender(target.value)}
            >
              <optgroup label="Known senders">
                {signatureSchemeNames.map((name) => (
                  <option key={name} value={name}>
                    {name === 'hmac' ? 'another sender that signs' : name.replaceAll('_', ' ')}
                  </option>
                ))}
              </optgroup>
              <optgroup label="Sends a secret">
                <option value="token">as Authorization: Bearer</option>
                <option value="url_token">in the address</option>
              </optgroup>
            </Input>
          )}
        </Field>
        {sender === 'hmac' && <SignatureFields />}
        <TextField
          label="Secret"
          path="secret"
          type="password"
          mono
          hint={
            makesSecret
              ? 'This sender makes the secret. Paste it. If the sender needs the address first, leave it out and store it afterwards.'
              : 'Leave it out to get a new secret, which is shown once.'
          }
        />
      </Form>
    </Dialog>
  );
}

/** Asks how a sender signs. The placeholders are the defaults and examples of the API. */
const SignatureFields = () => (
  <>
    <Two>
      <TextField label="Header with the signature" path="signature.header" required placeholder="X-Acme-Signature" />
      <TextField label="Text before it" path="signature.prefix" placeholder="sha256=" />
    </Two>
    <Two>
      <SelectField label="Hash" path="signature.algorithm" options={signatureAlgorithms.map((each) => [each, each])} />
      <SelectField label="Form" path="signature.encoding" options={signatureEncodings.map((each) => [each, each])} />
    </Two>
    <TextField
      label="Signed text"
      path="signature.signed"
      mono
      placeholder="{body}"
      hint="What the sender signs, with {body}, and with {timestamp} and {id} if it signs these."
    />
    <Two>
      <TextField label="Header with {timestamp}" path="signature.timestamp_header" placeholder="none" />
      <TextField label="Header with {id}" path="signature.id_header" placeholder="none" />
    </Two>
    <TextField label="Header with the event" path="event_header" placeholder="none" />
  </>
);
