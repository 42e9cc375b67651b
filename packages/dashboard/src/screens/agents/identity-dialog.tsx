import type { AgentIdentity } from '@runyard/contract/team/identities';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useEnvironments, useSecrets } from '../../api/lists.ts';
import { useClient, useMay, useSession } from '../../api/session.ts';
import { useUsableModels } from '../../api/usable-models.ts';
import { Hint, Row } from '../../parts/blocks.tsx';
import { Check, Input } from '../../parts/controls.tsx';
import { tellWaiting } from '../../parts/executor-field.tsx';
import { Field, SelectField, TextField, textOf } from '../../parts/form.tsx';
import { FormDialog } from '../../parts/form-dialog.tsx';
import { Rows } from '../../parts/rows.tsx';

const filled = (texts: readonly string[]): string[] => texts.map((text) => text.trim()).filter((text) => text !== '');

/** Creates an agent identity, or changes the given identity. Does not change the harness and the MCP servers of the identity. */
export function IdentityDialog({ identity, close }: { identity?: AgentIdentity; close: () => void }) {
  const client = useClient();
  const { team } = useSession();
  const queries = useQueryClient();
  const isOwner = useMay('owner');
  const environments = useEnvironments();
  const models = useUsableModels();
  const stored = useSecrets();
  const [skills, setSkills] = useState<readonly string[]>(identity?.skills ?? []);
  const [secrets, setSecrets] = useState<readonly string[]>(identity?.secrets.map(({ name }) => name) ?? []);
  /**
   * Returns the options of a `select` element. They include the current value even if it is not in `all`, for example because it was
   * deleted.
   */
  const choices = (none: string, all: readonly (readonly [string, string])[], present: string | undefined) => [
    ['', none] as const,
    ...all,
    ...(present === undefined || all.some(([value]) => value === present)
      ? []
      : [[present, `${visibleText(present)}, which is gone`] as const]),
  ];
  return (
    <FormDialog
      title={identity === undefined ? 'New agent' : `Change ${visibleText(identity.name)}`}
      action={identity === undefined ? 'Create the agent' : 'Save'}
      close={close}
      send={async (data, headers) => {
        // An empty text in the request removes the current value.
        const text = (name: string) => textOf(data, name) ?? '';
        const body = {
          name: text('name'),
          description: text('description'),
          base_model: text('base_model'),
          environment_id: text('environment_id'),
          worker_host: text('worker_host'),
          prompt: text('prompt'),
          skills: filled(skills),
          secrets: filled(secrets).map((name) => identity?.secrets.find((each) => each.name === name) ?? { name }),
          on_behalf_of_enabled: data.get('on_behalf_of_enabled') !== null,
        };
        if (identity === undefined) await client.createAgentIdentity({ body, headers: { ...headers } });
        else tellWaiting((await client.updateAgentIdentity({ params: { identityUid: identity.uid }, body })).waiting);
        await queries.invalidateQueries({ queryKey: ['identities', team.uid] });
      }}
    >
      <TextField label="Name" path="name" required maxLength={200} defaultValue={identity?.name} />
      <TextField label="What it is for" path="description" maxLength={2000} defaultValue={identity?.description} />
      <SelectField
        label="Model"
        path="base_model"
        key={`model ${models.data === undefined}`}
        defaultValue={identity?.base_model ?? ''}
        options={choices(
          'the default of the team',
          (models.data?.models ?? []).map(({ id, display_name: name }) => [id, visibleText(name)] as const),
          identity?.base_model,
        )}
        hint="For its runs without a model; the fields below work the same way"
      />
      <SelectField
        label="Environment"
        path="environment_id"
        key={`environment ${environments.data === undefined}`}
        defaultValue={identity?.environment_id ?? ''}
        options={choices(
          'none: an empty workspace',
          (environments.data ?? []).map(({ uid, config }) => [uid, visibleText(config.name ?? uid)] as const),
          identity?.environment_id,
        )}
      />
      <Field label="Instructions" path="prompt" hint="Before every prompt of its runs">
        {(control) => <Input {...control} as="textarea" rows={3} defaultValue={identity?.prompt} />}
      </Field>
      <Rows
        legend="Skills"
        what="skill"
        path="skills"
        values={skills}
        set={setSkills}
        placeholder="owner/repo:skill-name"
      />
      <Rows
        legend="Secrets"
        what="secret"
        path="secrets"
        values={secrets}
        set={setSecrets}
        suggestions={(stored.data ?? []).filter(({ scope }) => scope === 'team').map(({ name }) => name)}
        hint="Secrets of the team that its runs get in addition to their own"
      />
      <TextField label="Worker" path="worker_host" placeholder="any worker" defaultValue={identity?.worker_host} />
      <Row as="label">
        <Check
          type="checkbox"
          name="on_behalf_of_enabled"
          defaultChecked={identity?.on_behalf_of_enabled}
          disabled={!isOwner && !identity?.on_behalf_of_enabled}
        />
        <span>
          Its keys may create runs for a person
          <Hint> {isOwner ? 'Turning it on ends its present keys' : 'Only owners can turn it on'}</Hint>
        </span>
      </Row>
    </FormDialog>
  );
}
