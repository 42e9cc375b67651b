import type { Passkey } from '@runyard/contract/team/passkeys';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { hasPasskeys, makePasskey, nameOfBrowser } from '../../api/passkeys.ts';
import { useRead } from '../../api/read.ts';
import { useClient, useSession } from '../../api/session.ts';
import { P, Text } from '../../parts/blocks.tsx';
import { TextField } from '../../parts/form.tsx';
import { FormDialog } from '../../parts/form-dialog.tsx';
import { Ago } from '../../parts/time.tsx';
import { CrudTab } from './crud-tab.tsx';

/** Lists the passkeys of the person, who adds, renames and removes them. */
export function Passkeys() {
  const client = useClient();
  const { person } = useSession();
  const queries = useQueryClient();
  const navigate = useNavigate();
  const queryKey = ['passkeys', person.uid];
  const passkeys = useRead(queryKey, async (client) => (await client.listPasskeys()).passkeys);
  const remove = async ({ id, is_current: isCurrent }: Passkey) => {
    await client.deletePasskey({ params: { passkeyId: id } });
    if (!isCurrent) return;
    queries.clear();
    await navigate({ to: '/sign-in' });
  };
  return (
    <CrudTab
      title="Passkeys"
      about="A passkey signs you in with a fingerprint, a face or a PIN of your device, in all of your teams. Only you see your passkeys."
      query={passkeys}
      queryKey={queryKey}
      empty={{ title: 'No passkey yet', text: 'With a passkey you sign in without an API key.' }}
      keyOf={({ id }) => id}
      nameOf={({ name }) => name}
      columns={(column) => [
        column('Name', {}, ({ name, is_current }) => (
          <>
            <Text medium>{visibleText(name)}</Text>
            {is_current && <Text tone="dim"> this browser</Text>}
          </>
        )),
        column('Kept', { width: 140, tone: 'muted' }, ({ is_synced }) =>
          is_synced ? 'on several devices' : 'on one device',
        ),
        column('Added', { width: 108, tone: 'muted' }, ({ created_at }) => <Ago time={created_at} />),
        column('Last used', { width: 108, tone: 'muted' }, ({ last_used_at }) =>
          last_used_at === undefined ? 'never' : <Ago time={last_used_at} />,
        ),
      ]}
      actionsWidth={190}
      newLabel="Add a passkey"
      needs={() => 'viewer'}
      change="Rename"
      removeWord={() => 'Remove'}
      editor={(passkey, close) => (
        <PasskeyDialog passkey={passkey} close={close} changed={() => void queries.invalidateQueries({ queryKey })} />
      )}
      removal={(passkey) => ({
        title: `Remove the passkey “${visibleText(passkey.name)}”?`,
        action: 'Remove the passkey',
        text: `It no longer signs you in, and the browsers that it signed in are signed out at once${passkey.is_current ? ', also this one' : ''}. Your device may still show it; delete it there too.`,
        run: () => remove(passkey),
      })}
    />
  );
}

/** Adds a passkey, or renames `passkey`. */
function PasskeyDialog({
  passkey,
  close,
  changed,
}: {
  passkey: Passkey | undefined;
  close: () => void;
  changed: () => void;
}) {
  const client = useClient();
  const isNew = passkey === undefined;
  return (
    <FormDialog
      title={isNew ? 'Add a passkey' : `Rename “${visibleText(passkey.name)}”`}
      action={isNew ? 'Continue' : 'Rename'}
      close={close}
      send={async (data) => {
        const name = String(data.get('name')).trim();
        if (isNew) {
          const made = await makePasskey(() => client.startPasskey());
          await client.createPasskey({ body: { name, passkey: made } });
        } else await client.updatePasskey({ params: { passkeyId: passkey.id }, body: { name } });
        changed();
      }}
    >
      {isNew && (
        <P tone="muted">
          {hasPasskeys()
            ? 'Your browser then asks where to keep the passkey: on this device, on a phone or on a security key.'
            : 'This browser has no passkeys on this page. Open the service over https.'}
        </P>
      )}
      <TextField
        label="Name"
        path="name"
        maxLength={100}
        required
        defaultValue={isNew ? nameOfBrowser() : passkey.name}
        hint="So that you recognise it in this list"
      />
    </FormDialog>
  );
}
