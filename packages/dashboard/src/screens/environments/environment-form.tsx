import { networkPresetNames } from '@runyard/contract/egress/presets';
import type { Environment } from '@runyard/contract/environments/environments';
import { meaningOf, providerTools } from '@runyard/contract/environments/provider-tool-names';
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { useClient, useSession } from '../../api/session.ts';
import { Card, CardHead, Hint, Row, Two } from '../../parts/blocks.tsx';
import { CheckGroup } from '../../parts/check-group.tsx';
import { Button } from '../../parts/controls.tsx';
import { tellWaiting } from '../../parts/executor-field.tsx';
import { Form, type OnceHeaders, TextField } from '../../parts/form.tsx';
import { Pairs } from '../../parts/pairs.tsx';
import { RoleButton } from '../../parts/role-button.tsx';
import rows from '../../parts/rows.module.css';
import { Rows } from '../../parts/rows.tsx';
import { configFrom, draftOf, type EnvironmentDraft, githubTools, limits } from './environment-request.ts';
import styles from './environments.module.css';
import { SecretRows } from './secret-rows.tsx';
import { ServiceRows } from './service-rows.tsx';

/** Creates an environment, or changes the given environment. Does not change members that the form does not show. */
export function EnvironmentForm({ environment, close }: { environment?: Environment; close: () => void }) {
  const client = useClient();
  const { team } = useSession();
  const queries = useQueryClient();
  const navigate = useNavigate();
  const config = environment?.config;
  const [isBusy, setBusy] = useState(false);
  const [draft, setDraft] = useState(() => draftOf(config));
  const change = (members: Partial<EnvironmentDraft>) => setDraft((before) => ({ ...before, ...members }));

  const send = async (data: FormData, headers: OnceHeaders) => {
    const body = { config: configFrom(data, draft, config) };
    const saved =
      environment === undefined
        ? await client.createEnvironment({ body, headers: { ...headers } })
        : await client.updateEnvironment({ params: { uid: environment.uid }, body });
    await queries.invalidateQueries({ queryKey: ['environments', team.uid] });
    await queries.invalidateQueries({ queryKey: ['environment', saved.uid] });
    if (environment === undefined) await navigate({ to: '/environments/$uid', params: { uid: saved.uid }, search: {} });
    else close();
    tellWaiting(saved.waiting);
  };
  return (
    <Card as="section" aria-label={environment === undefined ? 'New environment' : 'Edit the environment'}>
      <CardHead>
        <h2>{environment === undefined ? 'New environment' : 'Edit'}</h2>
      </CardHead>
      <Form id="environment-form" frame="fields" send={send} onBusy={setBusy}>
        <Two>
          <TextField label="Name" path="config.name" name="name" required maxLength={200} defaultValue={config?.name} />
          <TextField
            label="What it is for"
            path="config.description"
            name="description"
            defaultValue={config?.description ?? ''}
          />
        </Two>
        <SetupFields draft={draft} change={change} config={config} />
        <ReachFields draft={draft} change={change} config={config} />
        <SandboxFields config={config} />
        <Row>
          <RoleButton needs="member" kind="primary" disabled={isBusy}>
            {environment === undefined ? 'Create environment' : 'Save'}
          </RoleButton>
          <Button onClick={close}>Back</Button>
        </Row>
      </Form>
    </Card>
  );
}

interface FieldsProps {
  readonly draft: EnvironmentDraft;
  readonly change: (members: Partial<EnvironmentDraft>) => void;
  readonly config: Environment['config'] | undefined;
}

/** The content of the sandbox when the agent begins. */
function SetupFields({ draft, change, config }: FieldsProps) {
  return (
    <>
      <Rows
        legend="Repositories"
        what="repository"
        path="config.github_repos"
        values={draft.repos}
        set={(repos) => change({ repos })}
        placeholder="owner/repo@branch"
        hint="Cloned into the workspace before the setup. The branch, tag or commit after @ is optional. An address on the code host works too"
      />
      <Rows
        legend="Setup commands"
        what="command"
        path="config.setup_commands"
        values={draft.setup}
        set={(setup) => change({ setup })}
        lines={2}
        placeholder="npm ci"
        hint="Run in this order; the first that fails ends the run. One may have several lines"
      />
      <ServiceRows path="config.services" services={draft.services} set={(services) => change({ services })} />
      <Pairs
        legend="Variables"
        what="variable"
        path="config.variables"
        pairs={draft.variables}
        set={(variables) => change({ variables })}
        hint="Of setup commands and the agent. Everyone in the team can read them: no secrets"
      />
      <SecretRows path="config.secrets" secrets={draft.secrets} set={(secrets) => change({ secrets })} />
      <CheckGroup
        legend="System"
        name="system"
        path="config.system"
        options={[['debian', 'own Debian, in which setup commands install packages']]}
        chosen={config?.system === undefined ? [] : [config.system]}
      />
    </>
  );
}

/** The things outside of the sandbox that the agent may reach and change. */
function ReachFields({ draft, change, config }: FieldsProps) {
  return (
    <>
      <CheckGroup
        legend="Package managers whose public registries it may reach"
        name="presets"
        path="config.network.presets"
        options={networkPresetNames.map((name) => [name, name])}
        chosen={config?.network?.presets ?? []}
      />
      <Rows
        legend="Hosts that it may reach"
        what="host"
        path="config.network.allowed_hosts"
        values={draft.hosts}
        set={(hosts) => change({ hosts })}
        placeholder="api.example.com"
        hint="Without a port: 443 and 80. *.example.com is for all names below it"
      />
      <CheckGroup
        legend="What model providers may do outside of the sandbox"
        name="provider_tools"
        path="config.provider_tools"
        options={providerTools.map((name) => [name, `${name.replaceAll('_', ' ')}: ${meaningOf(name)}`])}
        chosen={config?.provider_tools ?? []}
      />
      <GithubTools config={config} />
      <Rows
        legend="Branches that runs cannot push to"
        what="branch"
        path="config.protected_branches"
        values={draft.branches}
        set={(branches) => change({ branches })}
        placeholder="release/*"
        hint="HEAD is the default branch of each repository, * stands for any characters. Without a row, none is protected"
      />
    </>
  );
}

/** How often a run may write on GitHub. */
function GithubTools({ config }: Pick<FieldsProps, 'config'>) {
  return (
    <fieldset className={rows.rows}>
      <legend>How often a run may write on GitHub</legend>
      <div className={styles.three}>
        {Object.entries(githubTools).map(([name, words]) => (
          <TextField
            key={name}
            label={words}
            path={`config.github_tools.${name}`}
            name={`github_tools.${name}`}
            type="number"
            min={1}
            max={50}
            placeholder="never"
            defaultValue={config?.github_tools?.[name as keyof typeof githubTools]}
          />
        ))}
      </div>
      <Hint>Only in the issue or pull request whose event started it, and in pull requests that it opened</Hint>
    </fieldset>
  );
}

/** The sandbox itself: its limits, image and folder. */
function SandboxFields({ config }: Pick<FieldsProps, 'config'>) {
  return (
    <>
      <div className={styles.three}>
        {limits.map(([name, words]) => (
          <TextField
            key={name}
            label={words}
            path={`config.limits.${name}`}
            name={name}
            type="number"
            placeholder="the worker's limit"
            defaultValue={config?.limits?.[name]}
          />
        ))}
        <TextField
          label="Keep a failed setup, minutes"
          path="config.failure_session_retention_minutes"
          name="failure_session_retention_minutes"
          type="number"
          min={0}
          max={60}
          placeholder="10"
          defaultValue={
            config?.failure_session_retention_minutes === null ? 0 : config?.failure_session_retention_minutes
          }
          hint="For messages to its sandbox"
        />
      </div>
      <Two>
        <TextField
          label="Container image"
          path="config.docker_image"
          name="docker_image"
          mono
          placeholder="node:24"
          defaultValue={config?.docker_image}
          hint="Runs wait for a worker with containers"
        />
        <TextField
          label="Folder in which the agent works"
          path="config.working_directory"
          name="working_directory"
          mono
          placeholder="the workspace"
          defaultValue={config?.working_directory}
        />
      </Two>
    </>
  );
}
