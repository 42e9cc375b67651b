import { runStates } from '@runyard/contract/runs/run-states';
import { errorCatalogue } from '@runyard/contract/wire/error-catalogue';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQuery } from '@tanstack/react-query';
import { type FormEvent, useId } from 'react';
import { readAll, useEnvironments, useMembers } from '../../api/lists.ts';
import { useClient, useSession } from '../../api/session.ts';
import { listOf, oneOf, type Search } from '../../frame/search.ts';
import { Row, Stack, Text, Three, Two } from '../../parts/blocks.tsx';
import { Button, Check, Input } from '../../parts/controls.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { Field } from '../../parts/form.tsx';
import { stateWord } from '../../parts/icon.tsx';
import { nameOf } from '../../parts/person.tsx';
import styles from './runs.module.css';

/** Reads the schedules, automations and factories of the team by which a person can filter. */
function useStarters() {
  const client = useClient();
  const { team } = useSession();
  const { data } = useQuery({
    queryKey: ['starters', team.uid],
    queryFn: async () => {
      const [schedules, automations, factories] = await Promise.all([
        client.listSchedules({}),
        readAll(async (cursor) => {
          const page = await client.listTeamAutomations({ query: { limit: 100, ...cursor } });
          return { things: page.automations, next: page.page_info.next_cursor };
        }),
        readAll(async (cursor) => {
          const page = await client.listFactories({ query: { limit: 100, ...cursor } });
          return { things: page.factories, next: page.page_info.next_cursor };
        }),
      ]);
      return {
        schedules: schedules.schedules.map(({ id, name }) => ({ uid: id, name })),
        automations: automations.map(({ uid, name }) => ({ uid, name })),
        factories: factories.map(({ uid, name }) => ({ uid, name })),
      };
    },
  });
  return [
    { name: 'schedule_id', label: 'Schedule', things: data?.schedules ?? [] },
    { name: 'automation_id', label: 'Automation', things: data?.automations ?? [] },
    { name: 'factory_uid', label: 'Factory', things: data?.factories ?? [] },
  ] as const;
}

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
  const starters = useStarters();
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
      schedule_id: one('schedule_id'),
      automation_id: one('automation_id'),
      factory_uid: one('factory_uid'),
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
          <Button onClick={close}>Back</Button>
          <Button type="submit" form={form} kind="primary">
            Show runs
          </Button>
        </>
      }
    >
      <Stack id={form} as="form" onSubmit={submit}>
        <fieldset className={styles.set}>
          <Text as="legend" medium>
            State is one of
          </Text>
          <div className={styles.boxes}>
            {runStates.map((state) => (
              <Row key={state} as="label">
                <Check
                  type="checkbox"
                  name="state"
                  value={state}
                  defaultChecked={listOf(search.state).includes(state)}
                />
                {stateWord(state)}
              </Row>
            ))}
          </div>
        </fieldset>
        <Field label="Started by" path="creator">
          {(control) => (
            <Input {...control} as="select" name="creator" defaultValue={oneOf(search.creator) ?? ''}>
              <option value="">anyone</option>
              {(members.data ?? []).map(({ user }) => (
                <option key={user.uid} value={user.uid}>
                  {nameOf(user)}
                </option>
              ))}
            </Input>
          )}
        </Field>
        <Two>
          <Field label="Environment" path="environment_id">
            {(control) => (
              <Input {...control} as="select" name="environment_id" defaultValue={oneOf(search.environment_id) ?? ''}>
                <option value="">any</option>
                <option value="empty-environment">none</option>
                {(environments.data ?? []).map((environment) => (
                  <option key={environment.uid} value={environment.uid}>
                    {visibleText(environment.config.name ?? environment.uid)}
                  </option>
                ))}
              </Input>
            )}
          </Field>
          <Field label="Model" path="model_id">
            {(control) => <Input {...control} name="model_id" defaultValue={oneOf(search.model_id)} />}
          </Field>
        </Two>
        <Three>
          {starters.map(({ name, label, things }) => (
            <Field key={name} label={label} path={name}>
              {(control) => (
                // The options arrive later, and only then a value can be selected.
                <Input
                  key={things.length}
                  {...control}
                  as="select"
                  name={name}
                  defaultValue={oneOf(search[name]) ?? ''}
                >
                  <option value="">any</option>
                  {things.map((thing) => (
                    <option key={thing.uid} value={thing.uid}>
                      {visibleText(thing.name)}
                    </option>
                  ))}
                </Input>
              )}
            </Field>
          ))}
        </Three>
        <Field label="Error" path="error_code">
          {(control) => (
            <Input {...control} as="select" name="error_code" defaultValue={oneOf(search.error_code) ?? ''}>
              <option value="">any or none</option>
              {Object.keys(errorCatalogue).map((code) => (
                <option key={code}>{code}</option>
              ))}
            </Input>
          )}
        </Field>
        <Two>
          <Field label="Created after" path="created_after">
            {(control) => (
              <Input
                {...control}
                type="datetime-local"
                name="created_after"
                defaultValue={local(oneOf(search.created_after))}
              />
            )}
          </Field>
          <Field label="Created before" path="created_before">
            {(control) => (
              <Input
                {...control}
                type="datetime-local"
                name="created_before"
                defaultValue={local(oneOf(search.created_before))}
              />
            )}
          </Field>
        </Two>
      </Stack>
    </Dialog>
  );
}
