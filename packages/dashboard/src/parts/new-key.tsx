/** Creates an API key and shows it once. */

import type { CreateKeyRequest, CreateKeyResponse, KeyKind } from '@runyard/contract/team/keys';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQueryClient } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { useIdentities } from '../api/lists.ts';
import { useClient, useMay, useSession } from '../api/session.ts';
import { P } from './blocks.tsx';
import { CommandBlock } from './copy.tsx';
import { SecretOnceDialog } from './dialog.tsx';
import { SelectField, TextField, textOf } from './form.tsx';
import { FormDialog } from './form-dialog.tsx';
import { relativeText } from './format.ts';

const lifetimes = {
  '1d': '1 day',
  '30d': '30 days',
  '90d': '90 days',
  never: 'never',
} as const satisfies Record<CreateKeyRequest['expires_in'], string>;

/** An agent identity. */
interface Agent {
  readonly uid: string;
  readonly name: string;
}

/**
 * Asks for the members of a key, creates the key and shows it. `agent`: the key acts as this identity. If `agent` is undefined, the
 * person chooses for whom the key acts.
 */
export function NewKey({ agent, close }: { agent?: Agent; close: () => void }) {
  const [made, setMade] = useState<CreateKeyResponse | undefined>();
  if (made === undefined) return <KeyForm agent={agent} onMade={setMade} close={close} />;
  const ends =
    made.expires_at === undefined ? 'never ends' : `ends ${relativeText(Date.parse(made.expires_at), Date.now())}`;
  return (
    <SecretOnceDialog
      title={`Copy the key of “${visibleText(made.name)}” now`}
      value={made.key}
      hint={`${made.kind === 'personal' ? 'Personal' : 'Agent'} key, ${ends}`}
      close={close}
    >
      <P tone="muted">Use it in a shell, so that it is in no history:</P>
      <CommandBlock
        command={`export RUNYARD_BASE_URL=${location.origin}\nread -rs RUNYARD_API_KEY && export RUNYARD_API_KEY`}
      />
    </SecretOnceDialog>
  );
}

function KeyForm({
  agent,
  onMade,
  close,
}: {
  agent: Agent | undefined;
  onMade: (made: CreateKeyResponse) => void;
  close: () => void;
}) {
  const client = useClient();
  const queries = useQueryClient();
  const { team } = useSession();
  const identities = useIdentities();
  const mayMakeAgents = useMay('admin');
  const isMade = useRef(false);
  const [kind, setKind] = useState<KeyKind>(agent === undefined ? 'personal' : 'agent');
  const kinds = { personal: 'personal: acts as you', agent: 'agent: acts as a service account' } as const;
  return (
    <FormDialog
      title={agent === undefined ? 'New key' : `New key of ${visibleText(agent.name)}`}
      action="Create the key"
      close={() => isMade.current || close()}
      send={async (data, headers) => {
        const agentUid = agent?.uid ?? (kind === 'agent' ? textOf(data, 'agent_uid') : undefined);
        const made = await client.createKey({
          body: {
            name: String(data.get('name')).trim(),
            kind,
            expires_in: data.get('expires_in') as keyof typeof lifetimes,
            ...(agentUid === undefined ? {} : { agent_uid: agentUid }),
          },
          headers: { ...headers },
        });
        // The parent component shows the new key, because this dialog closes after the answer.
        isMade.current = true;
        onMade(made);
        await queries.invalidateQueries({ queryKey: ['keys', team.uid] });
      }}
    >
      <TextField label="Name" path="name" maxLength={200} required hint="Where it is used, such as laptop or ci" />
      {agent === undefined && (
        <SelectField
          label="Kind"
          path="kind"
          value={kind}
          onChange={({ target }) => setKind(target.value as KeyKind)}
          options={Object.entries(kinds).filter(([each]) => mayMakeAgents || each === 'personal')}
          hint={mayMakeAgents ? undefined : 'Keys of agents need the role admin'}
        />
      )}
      {agent === undefined && kind === 'agent' && (
        <SelectField
          label="Acts as"
          path="agent_uid"
          options={[
            ['', 'a service account of its own'],
            ...(identities.data ?? [])
              .filter(({ factory_uid: factoryUid }) => factoryUid === undefined)
              .map(({ uid, name }) => [uid, visibleText(name)] as const),
          ]}
        />
      )}
      <SelectField label="Ends after" path="expires_in" defaultValue="90d" options={Object.entries(lifetimes)} />
    </FormDialog>
  );
}
