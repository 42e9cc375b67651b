import type { SecretReference } from '@runyard/contract/secrets/secrets';
import { useId } from 'react';
import { useSecrets } from '../../api/lists.ts';
import { Hint } from '../../parts/blocks.tsx';
import { Button, Input } from '../../parts/controls.tsx';
import { FaultText } from '../../parts/fault-text.tsx';
import { useFault } from '../../parts/form.tsx';
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
      <Button small icon="plus" start onClick={() => set([...secrets, { name: '' }])}>
        Add secret
      </Button>
      <Hint>Secrets of the team. A run gets only the secrets that its creator has the right to</Hint>
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
        <Input
          id={id}
          mono
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
        <Input
          mono
          aria-label={`variable of secret ${number}`}
          placeholder={secret.name || 'variable'}
          autoComplete="off"
          spellCheck={false}
          value={secret.variable ?? ''}
          onChange={({ target }) => set({ ...secret, variable: target.value })}
        />
        <Input
          as="select"
          aria-label={`form of secret ${number}`}
          value={secret.as ?? 'variable'}
          onChange={({ target }) => set({ ...secret, as: target.value as 'variable' | 'file' })}
        >
          <option value="variable">its value</option>
          <option value="file">path of a file</option>
        </Input>
        <Input
          as="select"
          aria-label={`programs that get secret ${number}`}
          value={secret.phase ?? 'run'}
          onChange={({ target }) => set({ ...secret, phase: target.value === 'setup' ? 'setup' : undefined })}
        >
          <option value="run">setup and agent</option>
          <option value="setup">only the setup</option>
        </Input>
        <Button kind="ghost" icon="x" aria-label={`Remove secret ${number}`} onClick={remove} />
      </div>
      {fault && <FaultText id={`${id}-fault`} fault={fault} control={id} />}
    </>
  );
}
