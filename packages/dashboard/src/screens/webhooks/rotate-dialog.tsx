import { type FormEvent, useId, useState } from 'react';
import { Button } from 'react-aria-components';
import { useClient } from '../../api/session.ts';
import { useAttempts } from '../../parts/attempt.ts';
import { Dialog, SecretOnceDialog } from '../../parts/dialog.tsx';
import { Problem } from '../../parts/problem.tsx';

/** Replaces the secret of a webhook. The person enters a secret from the sender, or the page generates a secret and shows it once. */
export function RotateDialog({
  params,
  close,
}: {
  params: { factoryUid: string; webhookUid: string };
  close: () => void;
}) {
  const client = useClient();
  const form = useId();
  const { error, attempt } = useAttempts();
  const [fresh, setFresh] = useState<string | undefined>();
  const rotate = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const data = new FormData(event.currentTarget);
    const secret = String(data.get('secret') ?? '').trim();
    await attempt(async () => {
      const rotated = await client.rotateWebhookSecret({
        params,
        body: { grace_seconds: Number(data.get('grace')), ...(secret === '' ? {} : { secret }) },
      });
      if (secret === '' && rotated.secret !== undefined) setFresh(rotated.secret);
      else close();
    });
  };
  if (fresh !== undefined) return <SecretOnceDialog title="The new secret" value={fresh} close={close} />;
  return (
    <Dialog
      title="Rotate the secret?"
      close={close}
      footer={
        <>
          <Button className="btn" onPress={close}>
            Keep the secret
          </Button>
          <button type="submit" form={form} className="btn dan">
            Rotate
          </button>
        </>
      }
    >
      <form id={form} className="stack" onSubmit={(event) => void rotate(event)}>
        <div className="field">
          <label htmlFor={`${form}-secret`}>Secret of the sender</label>
          <input id={`${form}-secret`} name="secret" type="password" className="in mono" autoComplete="off" />
          <span className="hint">Absent: the service makes one and shows it once.</span>
        </div>
        <div className="field">
          <label htmlFor={`${form}-grace`}>The old secret is accepted</label>
          <select id={`${form}-grace`} name="grace" className="in">
            <option value="3600">for one more hour</option>
            <option value="86400">for one more day</option>
            <option value="0">no more, at once</option>
          </select>
        </div>
        <Problem error={error} />
      </form>
    </Dialog>
  );
}
