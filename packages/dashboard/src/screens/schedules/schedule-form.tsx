import type { ScheduledAgentItem } from '@runyard/contract/schedules/schedules';
import { overlapPolicies } from '@runyard/contract/wire/choices';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { type FormEvent, useRef, useState } from 'react';
import { failureOf } from '../../api/problem.ts';
import { useClient, useMay, useSession } from '../../api/session.ts';
import { Field } from '../../parts/field.tsx';
import { Problem } from '../../parts/problem.tsx';
import { CronWords } from './cron-words.tsx';

/** Names of the five fields of a cron expression. */
const fields = ['minute', 'hour', 'day', 'month', 'weekday'] as const;

/** Creates a schedule, or changes one. */
export function ScheduleForm({
  schedule,
  prompt = '',
  close,
}: {
  schedule?: ScheduledAgentItem;
  prompt?: string | undefined;
  close: () => void;
}) {
  const client = useClient();
  const { team } = useSession();
  const may = useMay('member');
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [cron, setCron] = useState(schedule?.cron_schedule ?? '0 9 * * MON-FRI');
  const [timezone, setTimezone] = useState(
    schedule?.timezone ?? (schedule ? 'UTC' : Intl.DateTimeFormat().resolvedOptions().timeZone),
  );
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const key = useRef<string | undefined>(undefined);
  const environments = useQuery({
    queryKey: ['environments', team.uid],
    queryFn: async () => (await client.listEnvironments({})).environments,
  });
  const models = useQuery({ queryKey: ['models', team.uid], queryFn: async () => await client.listModels({}) });
  const config = schedule?.agent_config;
  const save = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const data = new FormData(event.currentTarget);
    const text = (name: string): string => String(data.get(name) ?? '').trim();
    setBusy(true);
    setError(undefined);
    key.current ??= crypto.randomUUID();
    // What the form does not show stays as it is.
    const { model_id: _model, environment_id: _environment, ...others } = config ?? {};
    const body = {
      name: text('name'),
      cron_schedule: cron,
      timezone,
      prompt: text('prompt'),
      overlap: overlapPolicies.find((policy) => policy === text('overlap')) ?? ('allow' as const),
      agent_config: {
        ...others,
        ...(text('model') === '' ? {} : { model_id: text('model') }),
        ...(text('environment') === '' ? {} : { environment_id: text('environment') }),
      },
      enabled: schedule?.enabled ?? true,
    };
    try {
      const saved =
        schedule === undefined
          ? await client.createSchedule({ body, headers: { 'idempotency-key': key.current } })
          : await client.updateSchedule({ params: { scheduleId: schedule.id }, body });
      await queries.invalidateQueries({ queryKey: ['schedules', team.uid] });
      await queries.invalidateQueries({ queryKey: ['schedule', saved.id] });
      close();
      if (schedule === undefined) await navigate({ to: '/schedules/$scheduleId', params: { scheduleId: saved.id } });
    } catch (failure) {
      setError(failure);
      key.current = undefined;
      setBusy(false);
    }
  };
  const parts = cron.trim().split(/\s+/);
  const isFields = !cron.startsWith('@') && parts.length === 5;
  const faults = error === undefined ? new Map<string, { message: string }>() : failureOf(error).members;
  return (
    <form className="card" onSubmit={(event) => void save(event)}>
      <div className="card-h">
        <h2>{schedule === undefined ? 'New schedule' : 'Edit'}</h2>
      </div>
      <div className="form">
        <Field label="Name" fault={faults.get('name')}>
          {(id) => <input id={id} name="name" className="in" required maxLength={200} defaultValue={schedule?.name} />}
        </Field>
        <Field label="Fires" fault={faults.get('cron_schedule')}>
          {(id) =>
            isFields ? (
              <div className="cron">
                {fields.map((name, index) => (
                  <label key={name}>
                    {name}
                    <input
                      {...(index === 0 ? { id } : {})}
                      className="in mono"
                      aria-invalid={faults.has('cron_schedule')}
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
              <input id={id} className="in mono" value={cron} onChange={({ target }) => setCron(target.value)} />
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
        <div className="two">
          <Field label="Time zone" fault={faults.get('timezone')}>
            {(id) => (
              <>
                <input
                  id={id}
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
          <Field label="While a run is live" fault={faults.get('overlap')}>
            {(id) => (
              <select id={id} name="overlap" className="in" defaultValue={schedule?.overlap ?? 'allow'}>
                {overlapPolicies.map((policy) => (
                  <option key={policy} value={policy}>
                    {policy.replaceAll('_', ' ')}
                  </option>
                ))}
              </select>
            )}
          </Field>
        </div>
        <Field label="Prompt" fault={faults.get('prompt')}>
          {(id) => (
            <textarea
              id={id}
              name="prompt"
              className="in"
              rows={6}
              required={config?.skill_spec === undefined}
              defaultValue={schedule?.prompt ?? prompt}
            />
          )}
        </Field>
        <div className="two">
          <Field label="Model" fault={faults.get('agent_config.model_id')}>
            {(id) => (
              <select
                id={id}
                name="model"
                className="in"
                key={models.data ? 'read' : ''}
                defaultValue={config?.model_id ?? ''}
              >
                <option value="">the default</option>
                {(models.data?.models ?? []).map((model) => (
                  <option key={model.id} value={model.id} disabled={model.disable_reason !== undefined}>
                    {model.display_name}
                  </option>
                ))}
              </select>
            )}
          </Field>
          <Field label="Environment" fault={faults.get('agent_config.environment_id')}>
            {(id) => (
              <select
                id={id}
                name="environment"
                className="in"
                key={environments.data ? 'read' : ''}
                defaultValue={config?.environment_id ?? ''}
              >
                <option value="">none</option>
                {(environments.data ?? []).map((environment) => (
                  <option key={environment.uid} value={environment.uid}>
                    {visibleText(environment.config.name ?? environment.uid)}
                  </option>
                ))}
              </select>
            )}
          </Field>
        </div>
        <Problem error={error} />
        <div className="row">
          <button type="submit" className="btn pri" disabled={!may || isBusy}>
            {schedule === undefined ? 'Create schedule' : 'Save'}
          </button>
          <button type="button" className="btn" onClick={close}>
            Back
          </button>
        </div>
      </div>
    </form>
  );
}
