import type { Automation } from '@runyard/contract/automations/automations';
import { overlapPolicies } from '@runyard/contract/wire/choices';
import { useEnvironments } from '../../api/lists.ts';
import { useRead } from '../../api/read.ts';
import { useUsableModels } from '../../api/usable-models.ts';
import { Two } from '../../parts/blocks.tsx';
import { ExecutorField, takeOverOf } from '../../parts/executor-field.tsx';
import { memberOf, SelectField, TextField, textOf } from '../../parts/form.tsx';
import { LimitFields, withLimits } from '../../parts/limit-fields.tsx';
import { NotifyField } from '../../parts/notify-field.tsx';

type Option = readonly [value: string, words: string];

/** Adds the current value to the options if they do not have it, for example because it was deleted or its list is not read yet. */
const withCurrent = (options: readonly Option[], current: string | undefined): readonly Option[] =>
  current === undefined || options.some(([value]) => value === current) ? options : [...options, [current, current]];

/** The fields for the runs that an automation starts: agent, model, environment, and what happens while a run is live. */
export function StartFields({ factoryUid, automation }: { factoryUid: string; automation: Automation | undefined }) {
  const factory = useRead(['factory', factoryUid], (client) => client.getFactory({ params: { factoryUid } }));
  const models = useUsableModels();
  const environments = useEnvironments();
  const { agent, config, overlap, concurrency_key: group, executor } = automation ?? {};
  const agents = (factory.data?.agents ?? []).map(({ name }): Option => [name, name]);
  const [model, environment] = [factory.data?.default_model ?? '', factory.data?.default_environment ?? ''];
  return (
    <>
      <SelectField
        label="The run goes to the agent"
        path="agent"
        key={`agents ${agents.length}`}
        defaultValue={agent ?? ''}
        options={withCurrent([['', 'the foreman'], ...agents], agent)}
      />
      <Two>
        <SelectField
          label="Model"
          path="config.model_id"
          key={`models ${models.data?.models.length ?? 0}`}
          defaultValue={config?.model_id ?? ''}
          options={withCurrent(
            [
              ['', model === '' ? 'the default' : `of the agent or factory (${model})`],
              ...(models.data?.models ?? []).map((each): Option => [each.id, each.display_name]),
            ],
            config?.model_id,
          )}
        />
        <SelectField
          label="Environment"
          path="config.environment_id"
          key={`environments ${environments.data?.length ?? 0}`}
          defaultValue={config?.environment_id ?? ''}
          options={withCurrent(
            [
              ['', environment === '' ? 'none' : 'of the agent or factory'],
              ...(environments.data ?? []).map((each): Option => [each.uid, each.config.name ?? each.uid]),
            ],
            config?.environment_id,
          )}
        />
      </Two>
      <Two>
        <SelectField
          label="While a run is live"
          path="overlap"
          defaultValue={overlap ?? 'allow'}
          options={overlapPolicies.map((policy): Option => [policy, policy.replaceAll('_', ' ')])}
        />
        <TextField
          label="Only runs with the same"
          path="concurrency_key"
          mono
          placeholder="data.id"
          defaultValue={group}
          hint="Field of the payload. Empty: all runs of the automation count."
        />
      </Two>
      <LimitFields path="config" config={config} />
      <NotifyField rules={automation?.notify} />
      <ExecutorField executor={executor} />
    </>
  );
}

/**
 * Returns the stored configuration in the form of a request. An answer repeats the first skill as `skill_spec`, but a request may have only
 * one of `skills` and `skill_spec`.
 */
export function configOf(stored: NonNullable<Automation['config']>): NonNullable<Automation['config']> {
  const { skill_spec: _repeated, ...others } = stored;
  return stored.skills === undefined ? stored : others;
}

/**
 * Returns the members of the request that these fields describe. Members of the stored configuration that the form does not show stay as
 * they are.
 */
export function startOf(data: FormData, stored: Automation['config']) {
  const { model_id: _model, environment_id: _environment, ...others } = configOf(stored ?? {});
  const model = textOf(data, 'config.model_id');
  const environment = textOf(data, 'config.environment_id');
  const config = {
    ...withLimits(data, 'config', others),
    ...(model === undefined ? {} : { model_id: model }),
    ...(environment === undefined ? {} : { environment_id: environment }),
  };
  return {
    ...memberOf(data, 'agent'),
    ...memberOf(data, 'concurrency_key'),
    ...(Object.keys(config).length === 0 ? {} : { config }),
    overlap: overlapPolicies.find((policy) => policy === data.get('overlap')) ?? ('allow' as const),
    ...takeOverOf(data),
  };
}
