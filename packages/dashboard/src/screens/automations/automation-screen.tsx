import type { Automation, TestFilterResponse } from '@runyard/contract/automations/automations';
import { overlapPolicies } from '@runyard/contract/wire/choices';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { lazy, type ReactNode, Suspense, useId, useState } from 'react';
import { statusOf } from '../../api/problem.ts';
import { useClient, useMay } from '../../api/session.ts';
import { NotFound } from '../../frame/not-found.tsx';
import { Page } from '../../frame/page.tsx';
import { useAttempts } from '../../parts/attempt.ts';
import { SkeletonRows } from '../../parts/empty.tsx';
import { Field, Form, type OnceHeaders, textOf } from '../../parts/form.tsx';
import { Icon } from '../../parts/icon.tsx';
import { JsonView } from '../../parts/json-view.tsx';
import { Problem } from '../../parts/problem.tsx';
import { showToast } from '../../parts/toast.tsx';
import { FilterBuilder } from './filter-builder.tsx';
import { areRowsWhole, type FilterRow, filterOf, rowsOf } from './filter-rows.ts';
import { FilterTest } from './filter-test.tsx';

const ConfirmDialog = lazy(async () => ({ default: (await import('../../parts/dialog.tsx')).ConfirmDialog }));

const route = getRouteApi('/shell/factories/$factoryUid/automations/$automationUid');

/**
 * Returns a request with all current values of the automation. The caller changes single members of this request and sends the whole
 * request, because the service always replaces the whole automation.
 */
const requestOf = ({
  name,
  prompt,
  enabled,
  agent,
  triggers,
  config,
  overlap,
  concurrency_key: group,
}: Automation) => ({
  name,
  prompt,
  enabled,
  triggers,
  overlap,
  ...(agent === undefined ? {} : { agent }),
  ...(config === undefined ? {} : { config }),
  ...(group === undefined ? {} : { concurrency_key: group }),
});

/**
 * Shows one automation, or the form for a new automation (`new`). The screen shows when the automation fires, whether a given delivery
 * would fire the automation, and with whose rights its runs are executed.
 */
export function AutomationScreen() {
  const { factoryUid, automationUid } = route.useParams();
  const client = useClient();
  const isNew = automationUid === 'new';
  const { data, error } = useQuery({
    queryKey: ['automation', automationUid],
    queryFn: async () => await client.getAutomation({ params: { factoryUid, automationUid } }),
    enabled: !isNew,
  });
  const crumbs = (
    <Link to="/factories/$factoryUid" params={{ factoryUid }} className="hide-m">
      Factory
    </Link>
  );
  if (!isNew && data === undefined)
    return (
      <Page title="Automation" crumbs={crumbs}>
        {statusOf(error) === 404 ? (
          <NotFound what="automation" />
        ) : error ? (
          <Problem error={error} />
        ) : (
          <SkeletonRows />
        )}
      </Page>
    );
  return <Editor key={automationUid} factoryUid={factoryUid} automation={data} crumbs={crumbs} />;
}

function Editor({
  factoryUid,
  automation,
  crumbs,
}: {
  factoryUid: string;
  automation: Automation | undefined;
  crumbs: ReactNode;
}) {
  const client = useClient();
  const may = useMay('member');
  const queries = useQueryClient();
  const navigate = useNavigate();
  const form = useId();
  // The form edits only the first trigger with the provider `webhook` and does not change other triggers.
  const trigger = automation?.triggers.find(({ provider }) => provider === 'webhook');
  const others = (automation?.triggers ?? []).filter((each) => each !== trigger);
  const named = trigger?.filter?.webhook_ids;
  const [webhookIds, setWebhookIds] = useState<readonly string[]>(Array.isArray(named) ? named.map(String) : []);
  const [rows, setRows] = useState<readonly FilterRow[]>(() => rowsOf(trigger?.filter?.payload));
  const [tested, setTested] = useState<TestFilterResponse | undefined>();
  const { error, attempt } = useAttempts();
  const [isBusy, setBusy] = useState(false);
  const [isDeleting, setDeleting] = useState(false);
  const webhooks = useQuery({
    queryKey: ['factory', factoryUid, 'webhooks'],
    queryFn: async () => (await client.listWebhooks({ params: { factoryUid } })).webhooks,
  });
  // If rows cannot show the whole filter, the form does not change it.
  const isShown = areRowsWhole(trigger?.filter?.payload);
  const hasWebhookTrigger = trigger !== undefined || automation === undefined;
  const save = async (data: FormData, headers: OnceHeaders) => {
    const { payload: before, ...otherFilter } = trigger?.filter ?? {};
    const payload = isShown ? filterOf(rows) : before;
    const isFiltered = typeof payload === 'object' && payload !== null && Object.keys(payload).length > 0;
    const edited = {
      ...trigger,
      provider: 'webhook' as const,
      event: trigger?.event ?? 'received',
      filter: { ...otherFilter, webhook_ids: webhookIds, ...(isFiltered ? { payload } : {}) },
    };
    const body = {
      ...(automation === undefined ? {} : requestOf(automation)),
      name: textOf(data, 'name') ?? '',
      prompt: String(data.get('prompt') ?? ''),
      overlap: overlapPolicies.find((policy) => policy === data.get('overlap')) ?? ('allow' as const),
      triggers: [...(hasWebhookTrigger ? [edited] : []), ...others],
    };
    const saved =
      automation === undefined
        ? await client.createAutomation({ params: { factoryUid }, body, headers: { ...headers } })
        : await client.updateAutomation({ params: { factoryUid, automationUid: automation.uid }, body });
    await queries.invalidateQueries({ queryKey: ['factory', factoryUid] });
    await queries.invalidateQueries({ queryKey: ['automation', saved.uid] });
    showToast(`Saved ${saved.name}`);
    if (automation === undefined)
      await navigate({
        to: '/factories/$factoryUid/automations/$automationUid',
        params: { factoryUid, automationUid: saved.uid },
      });
  };
  const toggle = async () => {
    if (automation === undefined) return;
    const params = { factoryUid, automationUid: automation.uid };
    const set = async (enabled: boolean) => {
      await client.updateAutomation({ params, body: { ...requestOf(automation), enabled } });
      await queries.invalidateQueries({ queryKey: ['automation', automation.uid] });
    };
    if (await attempt(() => set(!automation.enabled)))
      showToast(
        `${automation.enabled ? 'Disabled' : 'Enabled'} ${automation.name}`,
        () => void attempt(() => set(automation.enabled)),
      );
  };
  return (
    <Page
      title={automation?.name ?? 'New automation'}
      crumbs={crumbs}
      actions={
        automation && (
          <>
            <Link className="btn" to="/runs" search={{ automation_id: automation.uid }}>
              Its runs
            </Link>
            <button type="button" className="btn" disabled={!may} onClick={() => void toggle()}>
              {automation.enabled ? 'Disable' : 'Enable'}
            </button>
            <button type="button" className="btn dan" disabled={!may} onClick={() => setDeleting(true)}>
              Delete…
            </button>
          </>
        )
      }
    >
      <div className="split e">
        <Form id={form} className="" send={save} onBusy={setBusy}>
          <div className="form">
            {(automation?.problems ?? []).map((problem, index) => (
              <div key={index} className="note wait">
                <Icon name="warn" />
                <span>{visibleText(typeof problem === 'string' ? problem : JSON.stringify(problem))}</span>
              </div>
            ))}
            {automation?.last_spawn_error && <p className="note bad">{visibleText(automation.last_spawn_error)}</p>}
            <Field label="Name" path="name">
              {(control) => (
                <input
                  {...control}
                  name="name"
                  className="in"
                  required
                  maxLength={100}
                  defaultValue={automation?.name}
                />
              )}
            </Field>
            {hasWebhookTrigger && (
              <>
                <fieldset className="plain-set">
                  <legend className="lab">When one of these webhooks receives an event</legend>
                  {webhooks.data?.length === 0 && (
                    <p className="hint">The factory has no webhook yet. Create one first.</p>
                  )}
                  {webhooks.data?.map(({ uid, name }) => (
                    <label key={uid} className="row">
                      <input
                        type="checkbox"
                        className="check"
                        checked={webhookIds.includes(uid)}
                        onChange={({ target }) =>
                          setWebhookIds(
                            target.checked ? [...webhookIds, uid] : webhookIds.filter((each) => each !== uid),
                          )
                        }
                      />
                      {visibleText(name)}
                    </label>
                  ))}
                </fieldset>
                <div className="field">
                  <span className="lab">and its payload meets all of these</span>
                  {isShown ? (
                    <FilterBuilder rows={rows} checks={tested?.checks ?? []} change={setRows} />
                  ) : (
                    <>
                      <p className="hint">
                        Rows cannot show this filter. It stays as it is; change it with the API or in files.
                      </p>
                      <JsonView value={trigger?.filter?.payload} />
                    </>
                  )}
                </div>
              </>
            )}
            {others.length > 0 && (
              <details>
                <summary className="dim small">{`${others.length} other triggers, which stay as they are`}</summary>
                <JsonView value={others} />
              </details>
            )}
            <Field label="Then a run gets this prompt" path="prompt">
              {(control) => (
                <textarea
                  {...control}
                  name="prompt"
                  className="in"
                  rows={8}
                  required
                  defaultValue={automation?.prompt}
                />
              )}
            </Field>
            <Field label="While a run is live" path="overlap">
              {(control) => (
                <select {...control} name="overlap" className="in" defaultValue={automation?.overlap ?? 'allow'}>
                  {overlapPolicies.map((policy) => (
                    <option key={policy} value={policy}>
                      {policy.replaceAll('_', ' ')}
                    </option>
                  ))}
                </select>
              )}
            </Field>
            {automation?.updated_by && (
              <p className="hint">{`Its runs act as ${visibleText(automation.updated_by.display_name ?? automation.updated_by.uid)}; after a change they act as you.`}</p>
            )}
            <details>
              <summary className="dim small">The filter as JSON</summary>
              <JsonView value={filterOf(rows)} />
            </details>
            <Problem error={error} />
          </div>
          <div className="savebar">
            <button
              type="submit"
              className="btn pri"
              disabled={!may || isBusy || (hasWebhookTrigger && webhookIds.length === 0)}
            >
              {automation === undefined ? 'Create automation' : 'Save'}
            </button>
            {hasWebhookTrigger && webhookIds.length === 0 && <span className="hint">Choose a webhook first.</span>}
            {!may && <span className="hint">Your role is viewer: a member can change automations.</span>}
          </div>
        </Form>
        <FilterTest factoryUid={factoryUid} webhookIds={webhookIds} rows={rows} result={tested} setResult={setTested} />
      </div>
      <Suspense>
        {isDeleting && automation && (
          <ConfirmDialog
            title={`Delete ${automation.name}?`}
            action="Delete the automation"
            run={async () => {
              await client.deleteAutomation({ params: { factoryUid, automationUid: automation.uid } });
              await queries.invalidateQueries({ queryKey: ['factory', factoryUid] });
              await navigate({ to: '/factories/$factoryUid', params: { factoryUid } });
            }}
            close={() => setDeleting(false)}
          >
            Events start no more runs of it. Runs that it has started stay.
          </ConfirmDialog>
        )}
      </Suspense>
    </Page>
  );
}
