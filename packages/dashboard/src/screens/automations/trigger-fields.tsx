import type { TestFilterResponse } from '@runyard/contract/automations/automations';
import type { Webhook } from '@runyard/contract/webhooks/webhooks';
import { visibleText } from '@runyard/contract/wire/visible';
import { useFault } from '../../parts/form.tsx';
import { Icon } from '../../parts/icon.tsx';
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
    <section className="field" aria-label={`Trigger ${index + 1}`}>
      <div className="row">
        <span className="lab grow">{headings[draft.kind]}</span>
        {remove && (
          <button
            type="button"
            className="btn ghost sm icon"
            aria-label={`Remove trigger ${index + 1}`}
            onClick={remove}
          >
            <Icon name="x" small />
          </button>
        )}
      </div>
      {draft.kind === 'webhook' && <WebhookFields draft={draft} webhooks={webhooks} checks={checks} change={change} />}
      {draft.kind === 'schedule' && <TimesFields times={draft.times} change={(times) => change({ ...draft, times })} />}
      {draft.kind === 'kept' && (
        <details>
          <summary className="dim small">
            {visibleText(`${draft.before.provider} ${draft.before.event}`)}. It stays as it is
          </summary>
          <JsonView value={draft.before} />
        </details>
      )}
      {fault && (
        <p className="small badc" role="alert">
          {visibleText(fault.message)}
        </p>
      )}
    </section>
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
      {webhooks?.length === 0 && <p className="hint">The factory has no webhook yet. Create one first.</p>}
      {webhooks?.map(({ uid, name }) => (
        <label key={uid} className="row">
          <input
            type="checkbox"
            className="check"
            checked={webhookIds.includes(uid)}
            onChange={({ target }) =>
              change({
                ...draft,
                webhookIds: target.checked ? [...webhookIds, uid] : webhookIds.filter((each) => each !== uid),
              })
            }
          />
          {visibleText(name)}
        </label>
      ))}
      <span className="lab">and its payload meets all of these</span>
      {rows ? (
        <FilterBuilder rows={rows} checks={checks} change={(next) => change({ ...draft, rows: next })} />
      ) : (
        <>
          <p className="hint">Rows cannot show this filter. It stays as it is; change it with the API or in files.</p>
          <JsonView value={draft.before.filter?.payload} />
        </>
      )}
    </>
  );
}

function TimesFields({ times, change }: { times: Times; change: (times: Times) => void }) {
  const field = (label: string, name: keyof Times, placeholder: string) => (
    <label>
      <span className="small mut">{label}</span>
      <input
        className="in mono"
        value={times[name] ?? ''}
        placeholder={placeholder}
        spellCheck={false}
        onChange={({ target }) => change({ ...times, [name]: target.value })}
      />
    </label>
  );
  return (
    <>
      <div className="two">
        {field('Five fields, or @every 90m', 'cron', '0 9 * * MON-FRI')}
        {field('Time zone', 'timezone', 'UTC')}
      </div>
      {field('Name of these times, if there are several', 'name', 'none')}
      <p className="small mut">
        <CronWords cron={times.cron} timezone={times.timezone} />
      </p>
    </>
  );
}
