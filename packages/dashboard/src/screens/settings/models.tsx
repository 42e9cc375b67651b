import { maxModelFallbacks } from '@runyard/contract/limits';
import type { Model, TeamModelSettings, UpdateTeamModelSettingsRequest } from '@runyard/contract/team/models';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQueryClient } from '@tanstack/react-query';
import { useModels } from '../../api/lists.ts';
import { useRead } from '../../api/read.ts';
import { useClient, useMay, useSession } from '../../api/session.ts';
import { useAttempts } from '../../parts/attempt.ts';
import { Hint, Row, Text, Two } from '../../parts/blocks.tsx';
import { Button, FieldGroup } from '../../parts/controls.tsx';
import { DataTable } from '../../parts/data-table.tsx';
import { Select } from '../../parts/form.tsx';
import { dollarText } from '../../parts/format.ts';
import { Loaded } from '../../parts/loaded.tsx';
import { Problem } from '../../parts/problem.tsx';
import { RoleButton } from '../../parts/role-button.tsx';
import { showToast } from '../../parts/toast.tsx';
import { ModelProviders } from './model-providers.tsx';
import { Section } from './section.tsx';
import styles from './settings.module.css';

const reasons = {
  ADMIN_DISABLED: 'without a key',
  OUT_OF_REQUESTS: 'budget is spent',
  PROVIDER_OUTAGE: 'provider has an outage',
  REQUIRES_UPGRADE: 'not available',
} as const satisfies Record<NonNullable<Model['disable_reason']>, string>;

/** Shows the models that runs of the team may use, the default model, and the fallback models. */
export function Models() {
  const client = useClient();
  const queries = useQueryClient();
  const { team, readsInstallation } = useSession();
  const models = useModels();
  const key = ['model-settings', team.uid];
  const settings = useRead(key, (client) => client.getModelSettings());
  const { error, attempt } = useAttempts();

  const change = (body: UpdateTeamModelSettingsRequest) =>
    attempt(async () => {
      queries.setQueryData(key, await client.updateModelSettings({ body }));
      await queries.invalidateQueries({ queryKey: ['models', team.uid] });
    });
  const isDisabled = (id: string): boolean => settings.data?.disabled_model_ids.includes(id) ?? false;
  const toggle = async (id: string) => {
    const wasDisabled = isDisabled(id);
    if (await change(wasDisabled ? { enable: [id] } : { disable: [id] }))
      showToast(`${id} is ${wasDisabled ? 'enabled' : 'disabled'}.`, () => {
        void change(wasDisabled ? { disable: [id] } : { enable: [id] });
      });
  };
  return (
    <>
      <Section
        title="Models"
        about="The team chooses the default model, the fallbacks, and the models that its runs may use."
      />
      {readsInstallation && <ModelProviders />}
      <Problem error={error} />
      <Loaded query={models}>
        {({ models: list, default_model_id: serviceDefault }) => (
          <>
            <Loaded query={settings} rows={2}>
              {(choices) => <Choices models={list} choices={choices} presentDefault={serviceDefault} change={change} />}
            </Loaded>
            <DataTable
              aria-label="Models"
              items={list}
              keyOf={({ id }) => id}
              columns={(column) => [
                column(
                  'Model',
                  { look: ({ description, display_name }) => ({ title: visibleText(description ?? display_name) }) },
                  ({ id }) => (
                    <>
                      <Text medium>{visibleText(id)}</Text>
                      {id === serviceDefault && <Text tone="dim"> default</Text>}
                    </>
                  ),
                ),
                column('Provider', { width: 108, tone: 'muted' }, ({ provider }) =>
                  provider === 'UNKNOWN' ? 'other' : provider.toLowerCase(),
                ),
                column(
                  <span title="US dollars for a million tokens that the model reads and writes">In / out, 1 M</span>,
                  { width: 140, number: true, look: ({ cost }) => ({ tone: cost ? 'muted' : 'dim' }) },
                  ({ cost }) =>
                    cost
                      ? `${dollarText(cost.input_usd_per_mtok)} / ${dollarText(cost.output_usd_per_mtok)}`
                      : 'not known',
                ),
                column('Images', { width: 80, tone: 'muted' }, ({ vision_supported: sees }) => (sees ? 'yes' : 'no')),
                column(
                  'State',
                  {
                    width: 140,
                    look: ({ disable_reason: reason }) => ({ tone: reason === undefined ? 'muted' : 'wait' }),
                  },
                  ({ id, disable_reason: reason }) =>
                    isDisabled(id) ? 'disabled' : reason === undefined ? 'can be chosen' : reasons[reason],
                ),
                column('Actions', { width: 92, spoken: true }, ({ id }) => (
                  <RoleButton
                    needs="admin"
                    small
                    label={`${isDisabled(id) ? 'Enable' : 'Disable'} ${id}`}
                    disabled={settings.data === undefined}
                    run={() => void toggle(id)}
                  >
                    {isDisabled(id) ? 'Enable' : 'Disable'}
                  </RoleButton>
                )),
              ]}
            />
          </>
        )}
      </Loaded>
    </>
  );
}

function Choices({
  models,
  choices,
  presentDefault,
  change,
}: {
  models: readonly Model[];
  choices: TeamModelSettings;
  presentDefault: string;
  change: (body: UpdateTeamModelSettingsRequest) => Promise<boolean>;
}) {
  const may = useMay('admin');
  const why = may ? undefined : 'Needs the role admin';
  const fallbacks = choices.fallback_model_ids;
  const usable = models.filter(({ id }) => !choices.disabled_model_ids.includes(id)).map(({ id }) => id);
  const otherModels = usable.filter((id) => !fallbacks.includes(id));
  const put = (ids: readonly string[]) => void change({ fallback_model_ids: [...ids] });
  return (
    <Two>
      <FieldGroup>
        <Text medium id="default-model">
          Default
        </Text>
        <span title={why}>
          <Select
            aria-labelledby="default-model"
            disabled={!may}
            value={choices.default_model_id ?? ''}
            options={[
              ['', choices.default_model_id ? 'that of the service' : `the default of the service, ${presentDefault}`],
              ...usable.map((id) => [id, visibleText(id)] as const),
            ]}
            onChange={({ target }) => void change({ default_model_id: target.value === '' ? null : target.value })}
          />
        </span>
        <Hint>For runs that name no model</Hint>
      </FieldGroup>
      <fieldset className={styles.set}>
        <legend>Fallbacks, in this order</legend>
        {fallbacks.map((id, index) => (
          <Row key={id} as="span">
            <Text tone="dim">{index + 1}</Text>
            <Text grow cut>
              {visibleText(id)}
            </Text>
            {may && index > 0 && (
              <Button
                kind="ghost"
                small
                aria-label={`Move ${id} up`}
                onClick={() => put(fallbacks.toSpliced(index, 1).toSpliced(index - 1, 0, id))}
              >
                Up
              </Button>
            )}
            {may && (
              <Button
                kind="ghost"
                small
                icon="x"
                aria-label={`Remove ${id} from the fallbacks`}
                onClick={() => put(fallbacks.filter((each) => each !== id))}
              />
            )}
          </Row>
        ))}
        {fallbacks.length < maxModelFallbacks && (
          <span title={why}>
            <Select
              aria-label="Add a fallback"
              disabled={!may}
              value=""
              options={[
                ['', fallbacks.length === 0 ? 'none' : 'add…'],
                ...otherModels.map((id) => [id, visibleText(id)] as const),
              ]}
              onChange={({ target }) => target.value !== '' && put([...fallbacks, target.value])}
            />
          </span>
        )}
        <Hint>While the provider of a run's model has an outage</Hint>
      </fieldset>
    </Two>
  );
}
