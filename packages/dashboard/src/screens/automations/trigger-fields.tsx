import type { TestFilterResponse } from '@runyard/contract/automations/automations';
import type { Webhook } from '@runyard/contract/webhooks/webhooks';
import { visibleText } from '@runyard/contract/wire/visible';
import { Hint, P, Row, Stack, Text, Two } from '../../parts/blocks.tsx';
import { Button, Check, FieldGroup, Input } from '../../parts/controls.tsx';
import { useFault } from '../../parts/form.tsx';
import { JsonView } from '../../parts/json-view.tsx';
import { CronWords } from '../schedules/cron-words.tsx';
import { FilterBuilder } from './filter-builder.tsx';
import type { Draft, Times, WebhookDraft } from './triggers.ts';

/** Lets a person edit one trigger. A trigger that the form cannot edit is shown as JSON. */
export function TriggerFields({
  draft,
  index,
  webhooks,
  checks,
  change,
  remove,
}: {
  draft: Draft;
  index: number;
  webhooks: readonly Webhook[] | undefined;
  /** The results of the last test of the filter. */
  checks: TestFilterResponse['checks'];
  change: (draft: Draft) => void;
  /** Absent: the automation has no other trigger. */
  remove: (() => void) | undefined;
}) {
  const fault = useFault(`triggers.${index}.*`);
  return (
    <FieldGroup as="section" aria-label={`Trigger ${index + 1}`}>
      <Row>
        <Text medium grow>
          {headings[draft.kind]}
        </Text>
        {remove && <Button kind="ghost" small icon="x" aria-label={`Remove trigger ${index + 1}`} onClick={remove} />}
      </Row>
      {draft.kind === 'webhook' && <WebhookFields draft={draft} webhooks={webhooks} checks={checks} change={change} />}
      {draft.kind === 'schedule' && <TimesFields times={draft.times} change={(times) => change({ ...draft, times })} />}
      {draft.kind === 'kept' && (
        <details>
          <Text as="summary" tone="dim" small>
            {visibleText(`${draft.before.provider} ${draft.before.event}`)}. It stays as it is
          </Text>
          <JsonView value={draft.before} />
        </details>
      )}
      {fault && (
        <P tone="bad" small role="alert">
          {visibleText(fault.message)}
        </P>
      )}
    </FieldGroup>
  );
}

const headings: Readonly<Record<Draft['kind'], string>> = {
  webhook: 'When one of these webhooks receives an event',
  schedule: 'At these times',
  kept: 'On this event',
};

function WebhookFields({
  draft,
  webhooks,
  checks,
  change,
}: {
  draft: WebhookDraft;
  webhooks: readonly Webhook[] | undefined;
  checks: TestFilterResponse['checks'];
  change: (draft: Draft) => void;
}) {
  const { webhookIds, rows } = draft;
  return (
    <>
      {webhooks?.length === 0 && <Hint as="p">The factory has no webhook yet. Create one first.</Hint>}
      {webhooks?.map(({ uid, name }) => (
        <Row key={uid} as="label">
          <Check
            type="checkbox"
            checked={webhookIds.includes(uid)}
            onChange={({ target }) =>
              change({
                ...draft,
                webhookIds: target.checked ? [...webhookIds, uid] : webhookIds.filter((each) => each !== uid),
              })
            }
          />
          {visibleText(name)}
        </Row>
      ))}
      <Text medium>and its payload meets all of these</Text>
      {rows ? (
        <FilterBuilder rows={rows} checks={checks} change={(next) => change({ ...draft, rows: next })} />
      ) : (
        <>
          <Hint as="p">Rows cannot show this filter. It stays as it is; change it with the API or in files.</Hint>
          <JsonView value={draft.before.filter?.payload} />
        </>
      )}
    </>
  );
}

function TimesFields({ times, change }: { times: Times; change: (times: Times) => void }) {
  const field = (label: string, name: keyof Times, placeholder: string) => (
    <Stack as="label" gap={1}>
      <Text tone="muted" small>
        {label}
      </Text>
      <Input
        mono
        value={times[name] ?? ''}
        placeholder={placeholder}
        spellCheck={false}
        onChange={({ target }) => change({ ...times, [name]: target.value })}
      />
    </Stack>
  );
  return (
    <>
      <Two>
        {field('Five fields, or @every 90m', 'cron', '0 9 * * MON-FRI')}
        {field('Time zone', 'timezone', 'UTC')}
      </Two>
      {field('Name of these times, if there are several', 'name', 'none')}
      <P tone="muted" small>
        <CronWords cron={times.cron} timezone={times.timezone} />
      </P>
    </>
  );
}
