import { maxSecretBytes, minSecretCharacters, minSecretLength } from '@runyard/contract/limits';
import type { Secret } from '@runyard/contract/secrets/secrets';
import type { secretScopes } from '@runyard/contract/wire/choices';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useEnvironments, useIdentities, useSecrets } from '../../api/lists.ts';
import { useClient, useMay, useSession } from '../../api/session.ts';
import { CommandBlock } from '../../parts/copy.tsx';
import { ConfirmDialog } from '../../parts/dialog.tsx';
import { Empty } from '../../parts/empty.tsx';
import { Field, SelectField, TextField } from '../../parts/form.tsx';
import { FormDialog } from '../../parts/form-dialog.tsx';
import { dateText } from '../../parts/format.ts';
import { Icon } from '../../parts/icon.tsx';
import { Loaded } from '../../parts/loaded.tsx';
import { RoleButton } from '../../parts/role-button.tsx';
import { Ago } from '../../parts/time.tsx';
import { Section } from './section.tsx';
import styles from './settings.module.css';

type Scope = (typeof secretScopes)[number];

/**
 * Lists the stored secrets. A row shows who may use the secret, and when a run last got it. A person can replace a value, but nobody can
 * read it.
 */
export function Secrets() {
  const secrets = useSecrets();
  const usersOf = useUsers();
  const [setting, setSetting] = useState<Secret | 'new' | undefined>();
  const [leaving, setLeaving] = useState<Secret | undefined>();
  const newButton = (
    <RoleButton needs="member" className="btn pri" run={() => setSetting('new')}>
      <Icon name="plus" small />
      Set secret
    </RoleButton>
  );
  const command = 'bin/runyard secrets set NPM_TOKEN --scope team < npm-token.txt';
  return (
    <>
      <Section
        title="Secrets"
        about="Runs use a secret by name. Its value is never shown again and is redacted in everything that a run prints."
        action={secrets.data?.length === 0 ? undefined : newButton}
      />
      <Loaded query={secrets}>
        {(list) =>
          list.length === 0 ? (
            <Empty title="No secret yet" command={command} action={newButton}>
              A secret is a value that sandboxes get in an environment variable or a file, and that no page, answer or
              transcript shows.
            </Empty>
          ) : (
            <>
              <div className="card">
                <table className="tbl in-card" aria-label="Secrets">
                  <thead>
                    <tr>
                      <th>Name</th>
                      <th className="w80">Scope</th>
                      <th className="w230">May use it</th>
                      <th className="w108">Last used</th>
                      <th className="w108">Set</th>
                      <th className="w180">
                        <span className="sr">Actions</span>
                      </th>
                    </tr>
                  </thead>
                  <tbody>
                    {list.map((secret) => {
                      const users = usersOf(secret);
                      const needs = secret.scope === 'team' ? 'admin' : 'member';
                      return (
                        <tr key={`${secret.scope} ${secret.name}`}>
                          <td className="mono" title={visibleText(secret.name)}>
                            {visibleText(secret.name)}
                          </td>
                          <td className="mut">{secret.scope}</td>
                          <td className={users === 'none' ? 'dim' : ''} title={users}>
                            {users}
                          </td>
                          <td className={secret.last_used_at === undefined ? 'dim' : 'mut'}>
                            {secret.last_used_at === undefined ? 'never' : <Ago time={secret.last_used_at} />}
                          </td>
                          <td className="mut">{dateText(Date.parse(secret.updated_at))}</td>
                          <td>
                            <span className="row">
                              <RoleButton
                                needs={needs}
                                className="btn sm"
                                label={`Replace ${secret.name}`}
                                run={() => setSetting(secret)}
                              >
                                Replace…
                              </RoleButton>
                              <RoleButton
                                needs={needs}
                                className="btn sm dan"
                                label={`Delete ${secret.name}`}
                                run={() => setLeaving(secret)}
                              >
                                Delete…
                              </RoleButton>
                            </span>
                          </td>
                        </tr>
                      );
                    })}
                  </tbody>
                </table>
              </div>
              <div className="stack s2">
                <p className="mut">From a shell, so that the value is in no history:</p>
                <CommandBlock command={command} />
              </div>
            </>
          )
        }
      </Loaded>
      {setting && (
        <SetSecretDialog earlier={setting === 'new' ? undefined : setting} close={() => setSetting(undefined)} />
      )}
      {leaving && <DeleteSecretDialog secret={leaving} users={usersOf(leaving)} close={() => setLeaving(undefined)} />}
    </>
  );
}

/** Returns a function that returns the names of the agents and environments that get a secret. */
function useUsers(): (secret: Secret) => string {
  const identities = useIdentities();
  const environments = useEnvironments();
  return ({ name, scope, agents = [] }) => {
    if (scope === 'personal') return 'only you';
    const names = [
      ...agents.map((uid) => identities.data?.find((each) => each.uid === uid)?.name ?? uid),
      ...(environments.data ?? [])
        .filter(({ config }) => config.secrets?.some((each) => each.name === name))
        .map(({ config, uid }) => `environment ${config.name ?? uid}`),
    ];
    return names.length === 0 ? 'people of the team' : visibleText(names.join(', '));
  };
}

function SetSecretDialog({ earlier, close }: { earlier: Secret | undefined; close: () => void }) {
  const client = useClient();
  const queries = useQueryClient();
  const { team } = useSession();
  const identities = useIdentities();
  const maySetForTeam = useMay('admin');
  const [scope, setScope] = useState<Scope>(earlier?.scope ?? (maySetForTeam ? 'team' : 'personal'));
  return (
    <FormDialog
      title={earlier === undefined ? 'Set a secret' : `Replace ${earlier.name}`}
      action={earlier === undefined ? 'Set' : 'Replace'}
      close={close}
      send={async (data) => {
        const file = data.get('file');
        const value = file instanceof File && file.size > 0 ? await file.text() : String(data.get('value'));
        // Keep the access of service accounts that have no checkbox in this form. If the list of agent identities could not be read,
        // the form has no checkboxes, so keep the access of all service accounts.
        const identityIds = identities.data?.map(({ uid }) => uid);
        const agents =
          scope === 'personal' || identityIds === undefined
            ? undefined
            : [
                ...data.getAll('agents').map(String),
                ...(earlier?.agents ?? []).filter((uid) => !identityIds.includes(uid)),
              ];
        await client.putSecret({
          params: { name: earlier?.name ?? String(data.get('name')).trim() },
          body: { value, scope, ...(agents === undefined ? {} : { agents }) },
        });
        await queries.invalidateQueries({ queryKey: ['secrets', team.uid] });
      }}
    >
      {earlier === undefined ? (
        <TextField
          label="Name"
          path="name"
          className="mono"
          pattern="[A-Za-z_][A-Za-z0-9_]{0,99}"
          title="Letters, digits and _, not a digit at the beginning"
          hint="Also the name of its environment variable, such as NPM_TOKEN"
          required
        />
      ) : (
        <p className="mut">Runs that have the earlier value keep it until they end.</p>
      )}
      <TextField
        label="Value"
        path="value"
        type="password"
        className="mono"
        hint={`At least ${minSecretLength} characters, ${minSecretCharacters} of them different`}
      />
      <Field
        label="Or a file"
        path="file"
        hint={`For values of several lines, such as private keys; at most ${maxSecretBytes / 1024} KB`}
      >
        {(control) => <input {...control} type="file" />}
      </Field>
      {earlier === undefined && (
        <SelectField
          label="Scope"
          path="scope"
          value={scope}
          onChange={({ target }) => setScope(target.value as Scope)}
          options={[
            ...(maySetForTeam ? ([['team', 'team: runs of every person of the team']] as const) : []),
            ['personal', 'personal: only your runs'],
          ]}
          hint={maySetForTeam ? undefined : 'Secrets of the team need the role admin'}
        />
      )}
      {scope === 'team' && (identities.data ?? []).length > 0 && (
        <fieldset className={styles.set}>
          <legend>Agents that may use it</legend>
          {(identities.data ?? []).map(({ uid, name }) => (
            <label key={uid} className="row">
              <input
                type="checkbox"
                className="check"
                name="agents"
                value={uid}
                defaultChecked={earlier?.agents?.includes(uid)}
              />
              {visibleText(name)}
            </label>
          ))}
        </fieldset>
      )}
    </FormDialog>
  );
}

function DeleteSecretDialog({ secret, users, close }: { secret: Secret; users: string; close: () => void }) {
  const client = useClient();
  const queries = useQueryClient();
  const { team } = useSession();
  return (
    <ConfirmDialog
      title={`Delete the secret ${secret.name}?`}
      action="Delete the secret"
      run={async () => {
        await client.deleteSecret({ params: { name: secret.name }, query: { scope: secret.scope } });
        await queries.invalidateQueries({ queryKey: ['secrets', team.uid] });
      }}
      close={close}
    >
      {`Runs that begin later and need it fail. It may be used by: ${users}. Nobody can read its value afterwards.`}
    </ConfirmDialog>
  );
}
