import { maxSecretBytes, minSecretCharacters, minSecretLength } from '@runyard/contract/limits';
import type { Secret } from '@runyard/contract/secrets/secrets';
import type { secretScopes } from '@runyard/contract/wire/choices';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useEnvironments, useIdentities, useSecrets } from '../../api/lists.ts';
import { useClient, useMay, useSession } from '../../api/session.ts';
import { P, Row, Stack } from '../../parts/blocks.tsx';
import { Check } from '../../parts/controls.tsx';
import { CommandBlock } from '../../parts/copy.tsx';
import { Field, SelectField, TextField } from '../../parts/form.tsx';
import { FormDialog } from '../../parts/form-dialog.tsx';
import { dateText } from '../../parts/format.ts';
import { Ago } from '../../parts/time.tsx';
import { CrudTab } from './crud-tab.tsx';
import styles from './settings.module.css';

type Scope = (typeof secretScopes)[number];

/**
 * Lists the stored secrets. A row shows who may use the secret, and when a run last got it. A person can replace a value, but nobody can
 * read it.
 */
export function Secrets() {
  const secrets = useSecrets();
  const usersOf = useUsers();
  const client = useClient();
  const { team } = useSession();
  const command = 'bin/runyard secrets set NPM_TOKEN --scope team < npm-token.txt';
  return (
    <CrudTab
      title="Secrets"
      about="Runs use a secret by name. Its value is never shown again and is redacted in everything that a run prints."
      query={secrets}
      queryKey={['secrets', team.uid]}
      empty={{
        title: 'No secret yet',
        text: 'A secret is a value that sandboxes get in an environment variable or a file, and that no page, answer or transcript shows.',
        command,
      }}
      keyOf={({ scope, name }) => `${scope} ${name}`}
      nameOf={({ name }) => name}
      columns={(column) => [
        column('Name', { mono: true }, ({ name }) => <span title={visibleText(name)}>{visibleText(name)}</span>),
        column('Scope', { width: 80, tone: 'muted' }, ({ scope }) => scope),
        column('May use it', { width: 230 }, (secret) => <span title={usersOf(secret)}>{usersOf(secret)}</span>),
        column(
          'Last used',
          { width: 108, look: ({ last_used_at }) => ({ tone: last_used_at === undefined ? 'dim' : 'muted' }) },
          ({ last_used_at }) => (last_used_at === undefined ? 'never' : <Ago time={last_used_at} />),
        ),
        column('Set', { width: 108, tone: 'muted' }, ({ updated_at }) => dateText(Date.parse(updated_at))),
      ]}
      actionsWidth={180}
      newLabel="Set secret"
      newNeeds="member"
      needs={({ scope }) => (scope === 'team' ? 'admin' : 'member')}
      change="Replace"
      editor={(earlier, close) => <SetSecretDialog earlier={earlier} close={close} />}
      removal={(secret) => ({
        title: `Delete the secret ${secret.name}?`,
        action: 'Delete the secret',
        text: `Later runs that need it fail. These may use it: ${usersOf(secret)}. Nobody can read its value afterwards.`,
        run: () => client.deleteSecret({ params: { name: secret.name }, query: { scope: secret.scope } }),
      })}
      below={() => (
        <Stack gap={2}>
          <P tone="muted">From a shell, so that the value is in no history:</P>
          <CommandBlock command={command} />
        </Stack>
      )}
    />
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
          mono
          pattern="[A-Za-z_][A-Za-z0-9_]{0,99}"
          title="Letters, digits and _, not a digit at the beginning"
          hint="Also the name of its environment variable, such as NPM_TOKEN"
          required
        />
      ) : (
        <P tone="muted">Runs that have the earlier value keep it until they end.</P>
      )}
      <TextField
        label="Value"
        path="value"
        type="password"
        mono
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
            <Row key={uid} as="label">
              <Check type="checkbox" name="agents" value={uid} defaultChecked={earlier?.agents?.includes(uid)} />
              {visibleText(name)}
            </Row>
          ))}
        </fieldset>
      )}
    </FormDialog>
  );
}
