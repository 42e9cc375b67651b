import type { SecretReference } from '@runyard/contract/secrets/secrets';
import { useId } from 'react';
import { useSecrets } from '../../api/lists.ts';
import { FaultText, useFault } from '../../parts/form.tsx';
import { Icon } from '../../parts/icon.tsx';
import styles from '../../parts/rows.module.css';

/** Returns the references without those whose name is still empty. */
export const namedSecrets = (secrets: readonly SecretReference[]): SecretReference[] =>
  secrets.filter(({ name }) => name.trim() !== '');

/** Lets a person edit the list of secrets that sandboxes get. Each secret has the name of a variable, and a form: variable or file. */
export function SecretRows({
  path,
  secrets,
  set,
}: {
  path: string;
  secrets: readonly SecretReference[];
  set: (secrets: readonly SecretReference[]) => void;
}) {
  const stored = useSecrets();
  const list = useId();
  const names = (stored.data ?? []).filter(({ scope }) => scope === 'team').map(({ name }) => name);
  return (
    <fieldset className={styles.rows}>
      <legend>Secrets</legend>
      {secrets.map((secret, index) => (
        <SecretRow
          key={index}
          number={index + 1}
          path={`${path}.${index}`}
          secret={secret}
          list={list}
          change={(next) => set(secrets.with(index, next))}
          remove={() => set(secrets.toSpliced(index, 1))}
        />
      ))}
      <datalist id={list}>
        {names.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      <button type="button" className="btn sm start" onClick={() => set([...secrets, { name: '' }])}>
        <Icon name="plus" small />
        Add secret
      </button>
      <span className="hint">Secrets of the team. A run gets only the secrets that its creator has the right to</span>
    </fieldset>
  );
}

function SecretRow({
  number,
  path,
  secret,
  list,
  change,
  remove,
}: {
  number: number;
  path: string;
  secret: SecretReference;
  list: string;
  change: (secret: SecretReference) => void;
  remove: () => void;
}) {
  const id = useId();
  const fault = useFault(`${path}.*`);
  const { variable: _variable, as: _form, phase: _phase, ...others } = secret;
  const set = ({ name, variable, as, phase }: SecretReference) =>
    change({
      ...others,
      name,
      ...(variable === undefined || variable === '' ? {} : { variable }),
      ...(as === 'file' ? { as } : {}),
      ...(phase === 'setup' ? { phase } : {}),
    });
  return (
    <>
      <div className={styles.quadruple}>
        <input
          id={id}
          className="in mono"
          list={list}
          aria-label={`secret ${number}`}
          aria-invalid={fault === undefined ? undefined : true}
          aria-describedby={fault === undefined ? undefined : `${id}-fault`}
          placeholder="NPM_TOKEN"
          autoComplete="off"
          spellCheck={false}
          value={secret.name}
          onChange={({ target }) => set({ ...secret, name: target.value })}
        />
        <input
          className="in mono"
          aria-label={`variable of secret ${number}`}
          placeholder={secret.name || 'variable'}
          autoComplete="off"
          spellCheck={false}
          value={secret.variable ?? ''}
          onChange={({ target }) => set({ ...secret, variable: target.value })}
        />
        <select
          className="in"
          aria-label={`form of secret ${number}`}
          value={secret.as ?? 'variable'}
          onChange={({ target }) => set({ ...secret, as: target.value as 'variable' | 'file' })}
        >
          <option value="variable">its value</option>
          <option value="file">path of a file</option>
        </select>
        <select
          className="in"
          aria-label={`programs that get secret ${number}`}
          value={secret.phase ?? 'run'}
          onChange={({ target }) => set({ ...secret, phase: target.value === 'setup' ? 'setup' : undefined })}
        >
          <option value="run">setup and agent</option>
          <option value="setup">only the setup</option>
        </select>
        <button type="button" className="btn ghost icon" aria-label={`Remove secret ${number}`} onClick={remove}>
          <Icon name="x" small />
        </button>
      </div>
      {fault && <FaultText id={`${id}-fault`} fault={fault} control={id} />}
    </>
  );
}
