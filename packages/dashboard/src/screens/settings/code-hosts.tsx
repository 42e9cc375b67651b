import type {
  CodeHostCredential,
  CodeHostCredentialKind,
  CodeHostScope,
  CreateCodeHostCredentialRequest,
} from '@runyard/contract/team/code-hosts';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useClient, useMay, useSession } from '../../api/session.ts';
import { ConfirmDialog } from '../../parts/dialog.tsx';
import { Empty } from '../../parts/empty.tsx';
import { Field, memberOf, SelectField, TextField } from '../../parts/form.tsx';
import { FormDialog } from '../../parts/form-dialog.tsx';
import { dateText } from '../../parts/format.ts';
import { Icon } from '../../parts/icon.tsx';
import { Loaded } from '../../parts/loaded.tsx';
import { nameOf } from '../../parts/person.tsx';
import { RoleButton } from '../../parts/role-button.tsx';
import { Section } from './section.tsx';

const kinds = {
  token: 'a token or password',
  github_app: 'a GitHub App',
} as const satisfies Record<CodeHostCredentialKind, string>;

/** The credentials that the gateway adds to git requests of runs. */
export function CodeHosts() {
  const client = useClient();
  const { team, person } = useSession();
  const credentials = useQuery({
    queryKey: ['code-hosts', team.uid],
    queryFn: async () => (await client.listCodeHostCredentials()).credentials,
  });
  const [isStoring, setStoring] = useState(false);
  const [leaving, setLeaving] = useState<CodeHostCredential | undefined>();
  const button = (
    <button type="button" className="btn pri" onClick={() => setStoring(true)}>
      <Icon name="plus" small />
      Store credential
    </button>
  );
  return (
    <>
      <Section
        title="Code hosts"
        about="The gateway adds a credential to git requests of runs. No sandbox sees it, and no page shows it again."
        action={credentials.data?.length === 0 ? undefined : button}
      />
      <Loaded query={credentials}>
        {(list) =>
          list.length === 0 ? (
            <Empty title="No credential yet" command="gh auth token | bin/runyard code-hosts add" action={button}>
              With a token or a GitHub App, runs clone private repositories and push branches. Public ones are cloned
              without.
            </Empty>
          ) : (
            <div className="card">
              <table className="tbl in-card" aria-label="Credentials of code hosts">
                <thead>
                  <tr>
                    <th>Host</th>
                    <th className="w140">Repositories of</th>
                    <th className="w200">Kind</th>
                    <th className="w160">For runs of</th>
                    <th className="w108">Stored</th>
                    <th className="w92">
                      <span className="sr">Actions</span>
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {list.map((credential) => (
                    <tr key={credential.id}>
                      <td className="md">{visibleText(credential.host)}</td>
                      <td className={credential.owner === undefined ? 'dim' : 'mut'}>
                        {credential.owner === undefined ? 'every owner' : visibleText(credential.owner)}
                      </td>
                      <td className="mut">{kindText(credential)}</td>
                      <td className="mut">
                        {credential.scope === 'team'
                          ? 'the whole team'
                          : credential.user === undefined || credential.user.uid === person.uid
                            ? 'you'
                            : nameOf(credential.user)}
                      </td>
                      <td className="mut">{dateText(Date.parse(credential.created_at))}</td>
                      <td>
                        <RoleButton
                          needs={credential.scope === 'team' ? 'admin' : 'member'}
                          className="btn sm dan"
                          label={`Delete the credential of ${credential.host}`}
                          run={() => setLeaving(credential)}
                        >
                          Delete…
                        </RoleButton>
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )
        }
      </Loaded>
      {isStoring && <StoreDialog close={() => setStoring(false)} />}
      {leaving && <DeleteDialog credential={leaving} close={() => setLeaving(undefined)} />}
    </>
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
      <div className="two">
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
      </div>
      <div className="two">
        <TextField label="Host" path="host" placeholder="that of the service" />
        <TextField label="Repositories of" path="owner" placeholder="every owner" />
      </div>
      {kind === 'token' ? (
        <>
          <TextField label="Token or password" path="token" type="password" className="mono" required />
          <TextField
            label="Name that it is sent with"
            path="username"
            placeholder="x-access-token"
            hint="GitHub takes the default. GitLab: oauth2"
          />
        </>
      ) : (
        <>
          <div className="two">
            <TextField label="App id or client id" path="app_id" required />
            <TextField label="Installation" path="installation_id" placeholder="found by repository" />
          </div>
          <Field label="Private key" path="private_key" hint="The file that GitHub gave, PEM">
            {(control) => <input {...control} type="file" accept=".pem,.key,.txt" required />}
          </Field>
        </>
      )}
    </FormDialog>
  );
}

function DeleteDialog({ credential, close }: { credential: CodeHostCredential; close: () => void }) {
  const client = useClient();
  const queries = useQueryClient();
  const { team } = useSession();
  return (
    <ConfirmDialog
      title={`Delete the credential of ${visibleText(credential.host)}?`}
      action="Delete the credential"
      run={async () => {
        await client.deleteCodeHostCredential({ params: { credentialId: credential.id } });
        await queries.invalidateQueries({ queryKey: ['code-hosts', team.uid] });
      }}
      close={close}
    >
      {`Runs of ${credential.scope === 'team' ? 'the whole team' : 'this person'} clone and push without it from now on: private repositories of ${visibleText(credential.owner ?? 'every owner')} are refused by the host.`}
    </ConfirmDialog>
  );
}
