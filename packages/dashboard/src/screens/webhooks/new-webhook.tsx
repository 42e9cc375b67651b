import type { WebhookWithSecret } from '@runyard/contract/webhooks/webhooks';
import { signatureSchemeNames, unsignedSchemeNames } from '@runyard/contract/wire/choices';
import { useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useId, useRef, useState } from 'react';
import { Button } from 'react-aria-components';
import { isPassing } from '../../api/problem.ts';
import { useClient } from '../../api/session.ts';
import { CommandBlock } from '../../parts/copy.tsx';
import { Dialog, SecretOnceDialog } from '../../parts/dialog.tsx';
import { Problem } from '../../parts/problem.tsx';

/** Providers that create the secret themselves. The person copies the secret from the provider's page. */
const givesSecret = ['stripe', 'slack', 'sentry', 'linear', 'zendesk', 'pagerduty'];

/** Returns 256 random bits in hexadecimal. */
const randomSecret = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(32)), (byte) => byte.toString(16).padStart(2, '0')).join('');

/** Returns a text that says where in the sender's settings a person enters the address and the secret. */
function setupText(scheme: string): string {
  switch (scheme) {
    case 'github':
      return 'In the repository: Settings, Webhooks, Add webhook. Payload URL: the address; content type: application/json; Secret: the secret.';
    case 'gitlab':
      return 'In the project: Settings, Webhooks, Add new webhook. URL: the address; Secret token: the secret.';
    case 'stripe':
      return 'In the Stripe dashboard: Developers, Webhooks, Add endpoint with the address. Then store its signing secret (whsec_…): rotate the secret of this webhook.';
    case 'sentry':
      return 'In Sentry: Settings, Developer Settings, New internal integration. Webhook URL: the address. Then store its client secret: rotate the secret of this webhook.';
    case 'token':
      return 'Send each event as a POST with JSON to the address, with the header Authorization: Bearer and the secret.';
    case 'url_token':
      return 'Send each event as a POST with JSON to the address. It contains the secret: treat the whole address as a secret.';
    default:
      return 'Enter the address and the secret in the webhook settings of the sender.';
  }
}

/** Creates a webhook, and shows its address and its secret once. */
export function NewWebhook({ factoryUid, close }: { factoryUid: string; close: () => void }) {
  const client = useClient();
  const queries = useQueryClient();
  const form = useId();
  const [kind, setKind] = useState('github');
  const [error, setError] = useState<unknown>();
  const [made, setMade] = useState<WebhookWithSecret | undefined>();
  const key = useRef<string | undefined>(undefined);
  const create = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const data = new FormData(event.currentTarget);
    const scheme = signatureSchemeNames.find((name) => name === kind);
    const isUnsigned = unsignedSchemeNames.some((name) => name === kind);
    const typed = String(data.get('secret') ?? '').trim();
    // Generate a random secret for a sender that accepts any secret.
    const secret =
      typed === '' && scheme !== undefined && !isUnsigned && !givesSecret.includes(kind) ? randomSecret() : typed;
    setError(undefined);
    key.current ??= crypto.randomUUID();
    try {
      const webhook = await client.createWebhook({
        params: { factoryUid },
        body: {
          name: String(data.get('name') ?? '').trim(),
          ...(scheme === undefined
            ? { auth_mode: kind === 'url_token' ? ('url_token' as const) : ('token' as const) }
            : { auth_mode: isUnsigned ? ('url_token' as const) : ('signature' as const), signature_scheme: scheme }),
          ...(secret === '' ? {} : { secret }),
        },
        headers: { 'idempotency-key': key.current },
      });
      await queries.invalidateQueries({ queryKey: ['factory', factoryUid, 'webhooks'] });
      setMade(typed === '' && secret !== '' ? { ...webhook, secret } : webhook);
    } catch (failure) {
      if (!isPassing(failure)) key.current = undefined;
      setError(failure);
    }
  };
  if (made?.secret !== undefined)
    return (
      <SecretOnceDialog title={`The secret of ${made.name}`} value={made.secret} close={close}>
        <p className="lab">Address</p>
        <CommandBlock command={made.url} what="Copy address" />
        <p className="mut">{setupText(kind)}</p>
      </SecretOnceDialog>
    );
  if (made !== undefined)
    return (
      <Dialog
        title={`${made.name} is ready`}
        close={close}
        footer={
          <Button className="btn pri" onPress={close}>
            Done
          </Button>
        }
      >
        <CommandBlock command={made.url} what="Copy address" />
        <p className="mut">{setupText(kind)}</p>
      </Dialog>
    );
  return (
    <Dialog
      title="New webhook"
      close={close}
      footer={
        <>
          <Button className="btn" onPress={close}>
            Back
          </Button>
          <button type="submit" form={form} className="btn pri">
            Create webhook
          </button>
        </>
      }
    >
      <form id={form} className="stack" onSubmit={(event) => void create(event)}>
        <div className="field">
          <label htmlFor={`${form}-name`}>Name</label>
          <input id={`${form}-name`} name="name" className="in" required maxLength={100} placeholder="GitHub" />
        </div>
        <div className="field">
          <label htmlFor={`${form}-kind`}>Sender</label>
          <select id={`${form}-kind`} className="in" value={kind} onChange={({ target }) => setKind(target.value)}>
            <optgroup label="Signs its requests">
              {signatureSchemeNames.map((name) => (
                <option key={name} value={name}>
                  {name.replaceAll('_', ' ')}
                </option>
              ))}
            </optgroup>
            <optgroup label="Sends a secret">
              <option value="token">as Authorization: Bearer</option>
              <option value="url_token">in the address</option>
            </optgroup>
          </select>
          <span className="hint">{setupText(kind)}</span>
        </div>
        <div className="field">
          <label htmlFor={`${form}-secret`}>Secret</label>
          <input id={`${form}-secret`} name="secret" type="password" className="in mono" autoComplete="off" />
          <span className="hint">
            {givesSecret.includes(kind)
              ? 'This sender makes the secret. Paste it, or create the webhook first and rotate its secret afterwards.'
              : 'Absent: the service makes one and shows it once.'}
          </span>
        </div>
        <Problem error={error} />
      </form>
    </Dialog>
  );
}
