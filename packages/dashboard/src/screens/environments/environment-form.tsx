import type { Environment } from '@runyard/contract/environments/environments';
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { type FormEvent, useRef, useState } from 'react';
import { failureOf } from '../../api/problem.ts';
import { useClient, useMay, useSession } from '../../api/session.ts';
import { Field } from '../../parts/field.tsx';
import { Problem } from '../../parts/problem.tsx';

const lines = (text: string): string[] =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');

/** Creates an environment, or changes one. What the form does not show stays as it is. */
export function EnvironmentForm({ environment, close }: { environment?: Environment; close: () => void }) {
  const client = useClient();
  const may = useMay('member');
  const { team } = useSession();
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const key = useRef<string | undefined>(undefined);
  const config = environment?.config;
  const save = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const data = new FormData(event.currentTarget);
    const text = (name: string): string => String(data.get(name) ?? '').trim();
    const hosts = lines(text('hosts'));
    const { docker_image: _image, working_directory: _folder, network, ...others } = config ?? {};
    const { allowed_hosts: _hosts, ...otherNetwork } = network ?? {};
    setBusy(true);
    setError(undefined);
    key.current ??= crypto.randomUUID();
    try {
      const body = {
        config: {
          ...others,
          name: text('name'),
          description: text('description') === '' ? null : text('description'),
          github_repos: lines(text('repos')).map((line) => {
            const [owner = '', ...rest] = line.split('/');
            return { owner, repo: rest.join('/') };
          }),
          setup_commands: lines(text('setup')),
          ...(text('image') === '' ? {} : { docker_image: text('image') }),
          ...(text('folder') === '' ? {} : { working_directory: text('folder') }),
          ...(hosts.length === 0 && network === undefined
            ? {}
            : { network: { ...otherNetwork, allowed_hosts: hosts } }),
        },
      };
      const saved =
        environment === undefined
          ? await client.createEnvironment({ body, headers: { 'idempotency-key': key.current } })
          : await client.updateEnvironment({ params: { uid: environment.uid }, body });
      await queries.invalidateQueries({ queryKey: ['environments', team.uid] });
      await queries.invalidateQueries({ queryKey: ['environment', saved.uid] });
      close();
      if (environment === undefined) await navigate({ to: '/environments/$uid', params: { uid: saved.uid } });
    } catch (failure) {
      key.current = undefined;
      setError(failure);
      setBusy(false);
    }
  };
  const faults = error === undefined ? undefined : failureOf(error).members;
  const faultAt = (start: string) => [...(faults ?? [])].find(([path]) => path.startsWith(start))?.[1];
  return (
    <form className="card" onSubmit={(event) => void save(event)}>
      <div className="card-h">
        <h2>{environment === undefined ? 'New environment' : 'Edit'}</h2>
      </div>
      <div className="form">
        <div className="two">
          <Field label="Name" fault={faultAt('config.name')}>
            {(id) => <input id={id} name="name" className="in" required maxLength={200} defaultValue={config?.name} />}
          </Field>
          <Field label="What it is for" fault={faultAt('config.description')}>
            {(id) => <input id={id} name="description" className="in" defaultValue={config?.description ?? ''} />}
          </Field>
        </div>
        <Field label="Repositories, one on a line" fault={faultAt('config.github_repos')}>
          {(id) => (
            <textarea
              id={id}
              name="repos"
              className="in mono"
              rows={3}
              placeholder="owner/repo"
              defaultValue={(config?.github_repos ?? []).map(({ owner, repo }) => `${owner}/${repo}`).join('\n')}
            />
          )}
        </Field>
        <Field label="Setup commands, one on a line" fault={faultAt('config.setup_commands')}>
          {(id) => (
            <textarea
              id={id}
              name="setup"
              className="in mono"
              rows={4}
              placeholder="npm ci"
              defaultValue={(config?.setup_commands ?? []).join('\n')}
            />
          )}
        </Field>
        <Field label="Hosts that it may reach, one on a line" fault={faultAt('config.network')}>
          {(id) => (
            <textarea
              id={id}
              name="hosts"
              className="in mono"
              rows={3}
              placeholder="registry.npmjs.org"
              defaultValue={(config?.network?.allowed_hosts ?? []).join('\n')}
            />
          )}
        </Field>
        <div className="two">
          <Field label="Container image" fault={faultAt('config.docker_image')}>
            {(id) => (
              <input
                id={id}
                name="image"
                className="in mono"
                placeholder="node:24"
                defaultValue={config?.docker_image}
              />
            )}
          </Field>
          <Field label="Folder in which the agent works" fault={faultAt('config.working_directory')}>
            {(id) => <input id={id} name="folder" className="in mono" defaultValue={config?.working_directory} />}
          </Field>
        </div>
        <Problem error={error} />
        <div className="row">
          <button type="submit" className="btn pri" disabled={!may || isBusy}>
            {environment === undefined ? 'Create environment' : 'Save'}
          </button>
          <button type="button" className="btn" onClick={close}>
            Back
          </button>
        </div>
      </div>
    </form>
  );
}
