import type { ScheduledAgentItem } from '@runyard/contract/schedules/schedules';
import { overlapPolicies } from '@runyard/contract/wire/choices';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useId, useState } from 'react';
import { useEnvironments } from '../../api/lists.ts';
import { useClient, useSession } from '../../api/session.ts';
import { useUsableModels } from '../../api/usable-models.ts';
import { ExecutorField, takeOverOf, tellWaiting } from '../../parts/executor-field.tsx';
import { Field, Form, type OnceHeaders, textOf } from '../../parts/form.tsx';
import { RoleButton } from '../../parts/role-button.tsx';
import { CronWords } from './cron-words.tsx';
import { NextTimes, usePreview } from './next-times.tsx';

/** Names of the five fields of a cron expression. */
const fields = ['minute', 'hour', 'day', 'month', 'weekday'] as const;

/**
 * The form that creates a schedule, or changes the given schedule. The other texts are the first values of a new schedule.
 */
export function ScheduleForm({
  schedule,
  prompt = '',
  model = '',
  environment = '',
  close,
}: {
  schedule?: ScheduledAgentItem;
  prompt?: string | undefined;
  model?: string | undefined;
  environment?: string | undefined;
  close: () => void;
}) {
  const client = useClient();
  const { team } = useSession();
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [cron, setCron] = useState(schedule?.cron_schedule ?? '0 9 * * MON-FRI');
  const [timezone, setTimezone] = useState(
    schedule?.timezone ?? (schedule ? 'UTC' : Intl.DateTimeFormat().resolvedOptions().timeZone),
  );
  const preview = usePreview(cron, timezone);
  const [isBusy, setBusy] = useState(false);
  const form = useId();
  const environments = useEnvironments();
  const models = useUsableModels();
  const config = schedule?.agent_config;
  const chosenModel = schedule === undefined ? model : (config?.model_id ?? '');
  const chosenEnvironment = schedule === undefined ? environment : (config?.environment_id ?? '');
  const save = async (data: FormData, headers: OnceHeaders) => {
    const text = (name: string): string => textOf(data, name) ?? '';
    // Keep the members of the configuration that the form does not show.
    const { model_id: _model, environment_id: _environment, ...others } = config ?? {};
    const chosen = {
      ...(text('model') === '' ? {} : { model_id: text('model') }),
      ...(text('environment') === '' ? {} : { environment_id: text('environment') }),
    };
    const body = {
      name: text('name'),
      cron_schedule: cron,
      timezone,
      prompt: text('prompt'),
      overlap: overlapPolicies.find((policy) => policy === text('overlap')) ?? ('allow' as const),
      // An empty configuration where there was none would be a text of the sender.
      ...(config === undefined && Object.keys(chosen).length === 0 ? {} : { agent_config: { ...others, ...chosen } }),
      enabled: schedule?.enabled ?? true,
      ...takeOverOf(data),
    };
    const saved =
      schedule === undefined
        ? await client.createSchedule({ body, headers: { ...headers } })
        : await client.updateSchedule({ params: { scheduleId: schedule.id }, body });
    await queries.invalidateQueries({ queryKey: ['schedules', team.uid] });
    await queries.invalidateQueries({ queryKey: ['schedule', saved.id] });
    close();
    tellWaiting(saved.waiting);
    if (schedule === undefined) await navigate({ to: '/schedules/$scheduleId', params: { scheduleId: saved.id } });
  };
  const parts = cron.trim().split(/\s+/);
  const isFields = !cron.startsWith('@') && parts.length === 5;
  return (
    <Form id={form} className="card" send={save} onBusy={setBusy}>
      <div className="card-h">
        <h2>{schedule === undefined ? 'New schedule' : 'Edit'}</h2>
      </div>
      <div className="form">
        <Field label="Name" path="name">
          {(control) => (
            <input {...control} name="name" className="in" required maxLength={200} defaultValue={schedule?.name} />
          )}
        </Field>
        <Field label="Fires" path="cron_schedule" fault={preview.faultOf('cron_schedule')}>
          {(control) =>
            isFields ? (
              <div className="cron">
                {fields.map((name, index) => (
                  <label key={name}>
                    {name}
                    <input
                      {...(index === 0 ? control : {})}
                      name={name}
                      className="in mono"
                      aria-invalid={control['aria-invalid']}
                      value={parts[index]}
                      onChange={({ target }) => {
                        const next = [...parts];
                        next[index] = target.value.replaceAll(/\s/g, '') || '*';
                        setCron(next.join(' '));
                      }}
                    />
                  </label>
                ))}
              </div>
            ) : (
              <input {...control} className="in mono" value={cron} onChange={({ target }) => setCron(target.value)} />
            )
          }
        </Field>
        <p className="row wrap small mut">
          <CronWords cron={cron} timezone={timezone} />
          <button
            type="button"
            className="btn ghost sm"
            onClick={() => setCron(isFields ? '@every 90m' : '0 9 * * MON-FRI')}
          >
            {isFields ? 'By interval' : 'By five fields'}
          </button>
        </p>
        <NextTimes {...preview} />
        <div className="two">
          <Field label="Time zone" path="timezone" fault={preview.faultOf('timezone')}>
            {(control) => (
              <>
                <input
                  {...control}
                  className="in"
                  list="zones"
                  value={timezone}
                  onChange={({ target }) => setTimezone(target.value)}
                />
                <datalist id="zones">
                  {Intl.supportedValuesOf('timeZone').map((zone) => (
                    <option key={zone} value={zone} />
                  ))}
                </datalist>
              </>
            )}
          </Field>
          <Field label="While a run is live" path="overlap">
            {(control) => (
              <select {...control} name="overlap" className="in" defaultValue={schedule?.overlap ?? 'allow'}>
                {overlapPolicies.map((policy) => (
                  <option key={policy} value={policy}>
                    {policy.replaceAll('_', ' ')}
                  </option>
                ))}
              </select>
            )}
          </Field>
        </div>
        <Field label="Prompt" path="prompt">
          {(control) => (
            <textarea
              {...control}
              name="prompt"
              className="in"
              rows={6}
              required={config?.skill_spec === undefined}
              defaultValue={schedule?.prompt ?? prompt}
            />
          )}
        </Field>
        <ExecutorField executor={schedule?.executor} />
        <div className="two">
          <Field label="Model" path="agent_config.model_id">
            {(control) => (
              <select
                {...control}
                name="model"
                className="in"
                key={models.data ? 'read' : ''}
                defaultValue={chosenModel}
              >
                <option value="">the default</option>
                {/* A list without the current value must not change this value: the person may not be allowed to see it. */}
                {chosenModel !== '' && !models.data?.models.some(({ id }) => id === chosenModel) && (
                  <option value={chosenModel}>{visibleText(chosenModel)}</option>
                )}
                {(models.data?.models ?? []).map((each) => (
                  <option key={each.id} value={each.id}>
                    {visibleText(each.display_name)}
                  </option>
                ))}
              </select>
            )}
          </Field>
          <Field label="Environment" path="agent_config.environment_id">
            {(control) => (
              <select
                {...control}
                name="environment"
                className="in"
                key={environments.data ? 'read' : ''}
                defaultValue={chosenEnvironment}
              >
                <option value="">none</option>
                {chosenEnvironment !== '' && !environments.data?.some(({ uid }) => uid === chosenEnvironment) && (
                  <option value={chosenEnvironment}>{visibleText(chosenEnvironment)}</option>
                )}
                {(environments.data ?? []).map((each) => (
                  <option key={each.uid} value={each.uid}>
                    {visibleText(each.config.name ?? each.uid)}
                  </option>
                ))}
              </select>
            )}
          </Field>
        </div>
        <div className="row">
          <RoleButton needs="member" className="btn pri" disabled={isBusy}>
            {schedule === undefined ? 'Create schedule' : 'Save'}
          </RoleButton>
          <button type="button" className="btn" onClick={close}>
            Back
          </button>
        </div>
      </div>
    </Form>
  );
}
