import { runStates } from '@runyard/contract/runs/run-states';
import { errorCatalogue } from '@runyard/contract/wire/error-catalogue';
import { visibleText } from '@runyard/contract/wire/visible';
import { type FormEvent, useId } from 'react';
import { Button } from 'react-aria-components';
import { useEnvironments, useMembers } from '../../api/lists.ts';
import { listOf, oneOf, type Search } from '../../frame/search.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { Field } from '../../parts/form.tsx';
import { stateWord } from '../../parts/icon.tsx';
import { nameOf } from '../../parts/person.tsx';
import styles from './runs.module.css';

/** Lets a person choose the filters of the list. A run is listed if it matches all filters. */
export function FilterDialog({
  search,
  apply,
  close,
}: {
  search: Search;
  apply: (search: Search) => void;
  close: () => void;
}) {
  const form = useId();
  const members = useMembers();
  const environments = useEnvironments();
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const data = new FormData(event.currentTarget);
    const all = (name: string): readonly string[] | undefined => {
      const values = data.getAll(name).map(String).filter(Boolean);
      return values.length > 0 ? values : undefined;
    };
    const one = (name: string): string | undefined => all(name)?.[0];
    const time = (name: string): string | undefined => {
      const text = one(name);
      return text === undefined ? undefined : new Date(text).toISOString();
    };
    apply({
      state: all('state'),
      error_code: all('error_code'),
      creator: all('creator'),
      environment_id: one('environment_id'),
      model_id: one('model_id'),
      created_after: time('created_after'),
      created_before: time('created_before'),
    });
  };
  /** Converts a time in the address to the format of a browser's time field, which is local time without a time zone. */
  const local = (text: string | undefined): string => {
    const at = new Date(text ?? '');
    if (Number.isNaN(at.getTime())) return '';
    return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
  };
  return (
    <Dialog
      title="Filter"
      close={close}
      footer={
        <>
          <Button className="btn" onPress={close}>
            Back
          </Button>
          <button type="submit" form={form} className="btn pri">
            Show runs
          </button>
        </>
      }
    >
      <form id={form} className="stack" onSubmit={submit}>
        <fieldset className={styles.set}>
          <legend className="lab">State is one of</legend>
          <div className={styles.boxes}>
            {runStates.map((state) => (
              <label key={state} className="row">
                <input
                  type="checkbox"
                  className="check"
                  name="state"
                  value={state}
                  defaultChecked={listOf(search.state).includes(state)}
                />
                {stateWord(state)}
              </label>
            ))}
          </div>
        </fieldset>
        <Field label="Started by" path="creator">
          {(control) => (
            <select {...control} className="in" name="creator" defaultValue={oneOf(search.creator) ?? ''}>
              <option value="">anyone</option>
              {(members.data ?? []).map(({ user }) => (
                <option key={user.uid} value={user.uid}>
                  {nameOf(user)}
                </option>
              ))}
            </select>
          )}
        </Field>
        <div className="two">
          <Field label="Environment" path="environment_id">
            {(control) => (
              <select
                {...control}
                className="in"
                name="environment_id"
                defaultValue={oneOf(search.environment_id) ?? ''}
              >
                <option value="">any</option>
                <option value="empty-environment">none</option>
                {(environments.data ?? []).map((environment) => (
                  <option key={environment.uid} value={environment.uid}>
                    {visibleText(environment.config.name ?? environment.uid)}
                  </option>
                ))}
              </select>
            )}
          </Field>
          <Field label="Model" path="model_id">
            {(control) => <input {...control} className="in" name="model_id" defaultValue={oneOf(search.model_id)} />}
          </Field>
        </div>
        <Field label="Error" path="error_code">
          {(control) => (
            <select {...control} className="in" name="error_code" defaultValue={oneOf(search.error_code) ?? ''}>
              <option value="">any or none</option>
              {Object.keys(errorCatalogue).map((code) => (
                <option key={code}>{code}</option>
              ))}
            </select>
          )}
        </Field>
        <div className="two">
          <Field label="Created after" path="created_after">
            {(control) => (
              <input
                {...control}
                type="datetime-local"
                className="in"
                name="created_after"
                defaultValue={local(oneOf(search.created_after))}
              />
            )}
          </Field>
          <Field label="Created before" path="created_before">
            {(control) => (
              <input
                {...control}
                type="datetime-local"
                className="in"
                name="created_before"
                defaultValue={local(oneOf(search.created_before))}
              />
            )}
          </Field>
        </div>
      </form>
    </Dialog>
  );
}
