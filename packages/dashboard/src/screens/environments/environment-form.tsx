import { networkPresetNames } from '@runyard/contract/egress/presets';
import type { CreateEnvironmentRequest, Environment } from '@runyard/contract/environments/environments';
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { useClient, useMay, useSession } from '../../api/session.ts';
import { Form, type OnceHeaders, TextField, textOf, useFault } from '../../parts/form.tsx';
import { Rows } from '../../parts/rows.tsx';
import styles from './environments.module.css';

type Config = CreateEnvironmentRequest['config'];

/** Returns the texts that are not blank. A setup command may have several lines. */
const filled = (texts: readonly string[]): string[] => texts.filter((text) => text.trim() !== '');

/** Creates an environment, or changes one. Members that the form does not show are not changed. */
export function EnvironmentForm({ environment, close }: { environment?: Environment; close: () => void }) {
  const client = useClient();
  const may = useMay('member');
  const { team } = useSession();
  const queries = useQueryClient();
  const navigate = useNavigate();
  const config = environment?.config;
  const [isBusy, setBusy] = useState(false);
  const [repos, setRepos] = useState<readonly string[]>(
    config?.github_repos?.map(({ owner, repo }) => `${owner}/${repo}`) ?? (config ? [] : ['']),
  );
  const [setup, setSetup] = useState<readonly string[]>(config?.setup_commands ?? (config ? [] : ['']));
  const [hosts, setHosts] = useState<readonly string[]>(config?.network?.allowed_hosts ?? []);

  const send = async (data: FormData, headers: OnceHeaders) => {
    const { docker_image: _image, working_directory: _folder, description: _text, network, ...others } = config ?? {};
    const [image, folder, description] = ['docker_image', 'working_directory', 'description'].map((name) =>
      textOf(data, name),
    );
    const presets = networkPresetNames.filter((name) => data.getAll('presets').includes(name));
    const allowed = filled(hosts).map((host) => host.trim());
    const next: Config = {
      ...others,
      name: String(data.get('name')).trim(),
      github_repos: filled(repos).map((text) => {
        const [owner = '', ...rest] = text.trim().split('/');
        return { owner, repo: rest.join('/') };
      }),
      setup_commands: filled(setup),
      ...(description === undefined ? {} : { description }),
      ...(image === undefined ? {} : { docker_image: image }),
      ...(folder === undefined ? {} : { working_directory: folder }),
      ...(allowed.length === 0 && presets.length === 0 && network === undefined
        ? {}
        : { network: { ...network, allowed_hosts: allowed, presets } }),
    };
    const body = { config: next };
    const saved =
      environment === undefined
        ? await client.createEnvironment({ body, headers: { ...headers } })
        : await client.updateEnvironment({ params: { uid: environment.uid }, body });
    await queries.invalidateQueries({ queryKey: ['environments', team.uid] });
    await queries.invalidateQueries({ queryKey: ['environment', saved.uid] });
    if (environment === undefined) await navigate({ to: '/environments/$uid', params: { uid: saved.uid }, search: {} });
    else close();
  };
  return (
    <section className="card" aria-label={environment === undefined ? 'New environment' : 'Edit the environment'}>
      <div className="card-h">
        <h2>{environment === undefined ? 'New environment' : 'Edit'}</h2>
      </div>
      <Form id="environment-form" className="form" send={send} onBusy={setBusy}>
        <div className="two">
          <TextField label="Name" path="config.name" name="name" required maxLength={200} defaultValue={config?.name} />
          <TextField
            label="What it is for"
            path="config.description"
            name="description"
            defaultValue={config?.description ?? ''}
          />
        </div>
        <Rows
          legend="Repositories"
          what="repository"
          path="config.github_repos"
          values={repos}
          set={setRepos}
          placeholder="owner/repo"
          hint="Cloned into the workspace before the setup"
        />
        <Rows
          legend="Setup commands"
          what="command"
          path="config.setup_commands"
          values={setup}
          set={setSetup}
          lines={2}
          placeholder="npm ci"
          hint="Run in this order; the first that fails ends the run. One may have several lines"
        />
        <Presets chosen={config?.network?.presets ?? []} />
        <Rows
          legend="Hosts that it may reach"
          what="host"
          path="config.network.allowed_hosts"
          values={hosts}
          set={setHosts}
          placeholder="api.example.com"
          hint="Without a port: 443 and 80. *.example.com is for all names below it"
        />
        <div className="two">
          <TextField
            label="Container image"
            path="config.docker_image"
            name="docker_image"
            className="mono"
            placeholder="node:24"
            defaultValue={config?.docker_image}
            hint="Runs wait for a worker with containers"
          />
          <TextField
            label="Folder in which the agent works"
            path="config.working_directory"
            name="working_directory"
            className="mono"
            placeholder="the workspace"
            defaultValue={config?.working_directory}
          />
        </div>
        <div className="row">
          <button
            type="submit"
            className="btn pri"
            disabled={!may || isBusy}
            title={may ? undefined : 'Needs the role member'}
          >
            {environment === undefined ? 'Create environment' : 'Save'}
          </button>
          <button type="button" className="btn" onClick={close}>
            Back
          </button>
        </div>
      </Form>
    </section>
  );
}

function Presets({ chosen }: { chosen: readonly string[] }) {
  const fault = useFault('config.network.presets.*');
  return (
    <fieldset className={styles.presets}>
      <legend>Package managers whose public registries it may reach</legend>
      {networkPresetNames.map((name) => (
        <label key={name} className="row">
          <input type="checkbox" className="check" name="presets" value={name} defaultChecked={chosen.includes(name)} />
          {name}
        </label>
      ))}
      {fault && (
        <p className="small badc" role="alert">
          {fault.message}
        </p>
      )}
    </fieldset>
  );
}
