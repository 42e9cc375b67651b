import type { ScheduledAgentItem } from '@runyard/contract/schedules/schedules';
import { overlapPolicies } from '@runyard/contract/wire/choices';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useId, useState } from 'react';
import { useEnvironments } from '../../api/lists.ts';
import { useClient, useSession } from '../../api/session.ts';
import { useUsableModels } from '../../api/usable-models.ts';
import { CardHead, Fields, Row, Stack, Two } from '../../parts/blocks.tsx';
import { Button, Input } from '../../parts/controls.tsx';
import { ExecutorField, takeOverOf, tellWaiting } from '../../parts/executor-field.tsx';
import { Field, Form, type OnceHeaders, textOf } from '../../parts/form.tsx';
import { LimitFields, withLimits } from '../../parts/limit-fields.tsx';
import { NotifyField, rulesOf } from '../../parts/notify-field.tsx';
import { RoleButton } from '../../parts/role-button.tsx';
import { CronWords } from './cron-words.tsx';
import { NextTimes, usePreview } from './next-times.tsx';
import styles from './schedules.module.css';

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
  const { team, person } = useSession();
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
      ...withLimits(data, 'agent_config', others),
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
      ...(config === undefined && Object.keys(chosen).length === 0 ? {} : { agent_config: chosen }),
      enabled: schedule?.enabled ?? true,
      ...takeOverOf(data),
      notify: rulesOf(data, schedule?.notify, person.uid),
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
    <Form id={form} frame="card" send={save} onBusy={setBusy}>
      <CardHead>
        <h2>{schedule === undefined ? 'New schedule' : 'Edit'}</h2>
      </CardHead>
      <Fields>
        <Field label="Name" path="name">
          {(control) => <Input {...control} name="name" required maxLength={200} defaultValue={schedule?.name} />}
        </Field>
        <Field label="Fires" path="cron_schedule" fault={preview.faultOf('cron_schedule')}>
          {(control) =>
            isFields ? (
              <div className={styles.cron}>
                {fields.map((name, index) => (
                  <Stack key={name} as="label" gap={1}>
                    {name}
                    <Input
                      {...(index === 0 ? control : {})}
                      name={name}
                      mono
                      aria-invalid={control['aria-invalid']}
                      value={parts[index]}
                      onChange={({ target }) => {
                        const next = [...parts];
                        next[index] = target.value.replaceAll(/\s/g, '') || '*';
                        setCron(next.join(' '));
                      }}
                    />
                  </Stack>
                ))}
              </div>
            ) : (
              <Input {...control} mono value={cron} onChange={({ target }) => setCron(target.value)} />
            )
          }
        </Field>
        <Row as="p" tone="muted" wrap small>
          <CronWords cron={cron} timezone={timezone} />
          <Button kind="ghost" small onClick={() => setCron(isFields ? '@every 90m' : '0 9 * * MON-FRI')}>
            {isFields ? 'By interval' : 'By five fields'}
          </Button>
        </Row>
        <NextTimes {...preview} />
        <Two>
          <Field label="Time zone" path="timezone" fault={preview.faultOf('timezone')}>
            {(control) => (
              <>
                <Input
                  {...control}
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
              <Input {...control} name="overlap" as="select" defaultValue={schedule?.overlap ?? 'allow'}>
                {overlapPolicies.map((policy) => (
                  <option key={policy} value={policy}>
                    {policy.replaceAll('_', ' ')}
                  </option>
                ))}
              </Input>
            )}
          </Field>
        </Two>
        <Field label="Prompt" path="prompt">
          {(control) => (
            <Input
              {...control}
              name="prompt"
              as="textarea"
              rows={6}
              required={config?.skill_spec === undefined}
              defaultValue={schedule?.prompt ?? prompt}
            />
          )}
        </Field>
        <NotifyField rules={schedule?.notify} />
        <ExecutorField executor={schedule?.executor} />
        <Two>
          <Field label="Model" path="agent_config.model_id">
            {(control) => (
              <Input {...control} name="model" as="select" key={models.data ? 'read' : ''} defaultValue={chosenModel}>
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
              </Input>
            )}
          </Field>
          <Field label="Environment" path="agent_config.environment_id">
            {(control) => (
              <Input
                {...control}
                name="environment"
                as="select"
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
              </Input>
            )}
          </Field>
        </Two>
        <LimitFields path="agent_config" config={config} />
        <Row>
          <RoleButton needs="member" kind="primary" disabled={isBusy}>
            {schedule === undefined ? 'Create schedule' : 'Save'}
          </RoleButton>
          <Button onClick={close}>Back</Button>
        </Row>
      </Fields>
    </Form>
  );
}
