import type {
  CodeHostCredential,
  CodeHostCredentialKind,
  CodeHostScope,
  CreateCodeHostCredentialRequest,
} from '@runyard/contract/team/code-hosts';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useTeamRead } from '../../api/read.ts';
import { useClient, useMay, useSession } from '../../api/session.ts';
import { Two } from '../../parts/blocks.tsx';
import { Field, memberOf, SelectField, TextField } from '../../parts/form.tsx';
import { FormDialog } from '../../parts/form-dialog.tsx';
import { dateText } from '../../parts/format.ts';
import { nameOf } from '../../parts/person.tsx';
import { CrudTab } from './crud-tab.tsx';

const kinds = {
  token: 'a token or password',
  github_app: 'a GitHub App',
} as const satisfies Record<CodeHostCredentialKind, string>;

/** Reads the stored credentials of code hosts that the person may see. */
export function useCodeHosts() {
  return useTeamRead(['code-hosts'], async (client) => (await client.listCodeHostCredentials()).credentials);
}

/** The credentials that the gateway adds to git requests of runs. */
export function CodeHosts() {
  const client = useClient();
  const { team, person } = useSession();
  const credentials = useCodeHosts();
  const userOf = ({ scope, user }: CodeHostCredential): string => {
    if (scope === 'team') return 'the whole team';
    return user === undefined || user.uid === person.uid ? 'you' : nameOf(user);
  };
  return (
    <CrudTab
      title="Code hosts"
      about="The gateway adds a credential to git requests of runs. No sandbox sees it, and no page shows it again."
      query={credentials}
      queryKey={['code-hosts', team.uid]}
      empty={{
        title: 'No credential yet',
        text: 'With a token or a GitHub App, runs clone private repositories and push branches. Public ones are cloned without.',
        command: 'gh auth token | bin/runyard code-hosts add',
      }}
      keyOf={({ id }) => id}
      nameOf={({ host }) => `the credential of ${host}`}
      columns={(column) => [
        column('Host', { medium: true }, ({ host }) => visibleText(host)),
        column(
          'Repositories of',
          { width: 140, look: ({ owner }) => ({ tone: owner === undefined ? 'dim' : 'muted' }) },
          ({ owner }) => visibleText(owner ?? 'every owner'),
        ),
        column('Kind', { width: 200, tone: 'muted' }, kindText),
        column('For runs of', { width: 160, tone: 'muted' }, userOf),
        column('Stored', { width: 108, tone: 'muted' }, ({ created_at }) => dateText(Date.parse(created_at))),
      ]}
      actionsWidth={92}
      newLabel="Store credential"
      needs={({ scope }) => (scope === 'team' ? 'admin' : 'member')}
      editor={(_, close) => <StoreDialog close={close} />}
      removal={({ id, host, owner, scope }) => ({
        title: `Delete the credential of ${visibleText(host)}?`,
        action: 'Delete the credential',
        text: `Runs of ${scope === 'team' ? 'the whole team' : 'this person'} clone and push without it from now on: private repositories of ${visibleText(owner ?? 'every owner')} are refused by the host.`,
        run: () => client.deleteCodeHostCredential({ params: { credentialId: id } }),
      })}
    />
  );
}

function kindText({ kind, username, app_id: appId, installation_id: installation }: CodeHostCredential): string {
  if (kind === 'token') return visibleText(username === undefined ? 'token' : `token of ${username}`);
  return visibleText(`GitHub App ${appId ?? ''}${installation === undefined ? '' : `, installation ${installation}`}`);
}

const fileText = async (file: FormDataEntryValue | null): Promise<string> =>
  file instanceof File ? await file.text() : '';

function StoreDialog({ close }: { close: () => void }) {
  const client = useClient();
  const queries = useQueryClient();
  const { team } = useSession();
  const mayStoreForTeam = useMay('admin');
  const [kind, setKind] = useState<CodeHostCredentialKind>('token');
  return (
    <FormDialog
      title="Store a credential"
      action="Store"
      close={close}
      send={async (data, headers) => {
        const common = {
          scope: data.get('scope') as CodeHostScope,
          ...memberOf(data, 'host'),
          ...memberOf(data, 'owner'),
        };
        const body: CreateCodeHostCredentialRequest =
          kind === 'token'
            ? { ...common, kind, ...memberOf(data, 'token'), ...memberOf(data, 'username') }
            : {
                ...common,
                kind,
                ...memberOf(data, 'app_id'),
                private_key: await fileText(data.get('private_key')),
                ...memberOf(data, 'installation_id'),
              };
        await client.createCodeHostCredential({ body, headers: { ...headers } });
        await queries.invalidateQueries({ queryKey: ['code-hosts', team.uid] });
      }}
    >
      <Two>
        <SelectField
          label="Kind"
          path="kind"
          value={kind}
          onChange={({ target }) => setKind(target.value as CodeHostCredentialKind)}
          options={Object.entries(kinds)}
        />
        <SelectField
          label="For runs of"
          path="scope"
          options={[['personal', 'you'], ...(mayStoreForTeam ? ([['team', 'the whole team']] as const) : [])]}
          hint={mayStoreForTeam ? undefined : 'For the team: needs the role admin'}
        />
      </Two>
      <Two>
        <TextField label="Host" path="host" placeholder="that of the service" />
        <TextField label="Repositories of" path="owner" placeholder="every owner" />
      </Two>
      {kind === 'token' ? (
        <>
          <TextField label="Token or password" path="token" type="password" mono required />
          <TextField
            label="Name that it is sent with"
            path="username"
            placeholder="x-access-token"
            hint="GitHub takes the default. GitLab: oauth2"
          />
        </>
      ) : (
        <>
          <Two>
            <TextField label="App id or client id" path="app_id" required />
            <TextField label="Installation" path="installation_id" placeholder="found by repository" />
          </Two>
          <Field label="Private key" path="private_key" hint="The file that GitHub gave, PEM">
            {(control) => <input {...control} type="file" accept=".pem,.key,.txt" required />}
          </Field>
        </>
      )}
    </FormDialog>
  );
}
