import type { Automation, TestFilterResponse } from '@runyard/contract/automations/automations';
import { overlapPolicies } from '@runyard/contract/wire/choices';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { type FormEvent, lazy, type ReactNode, Suspense, useId, useState } from 'react';
import { failureOf, statusOf } from '../../api/problem.ts';
import { useClient, useMay } from '../../api/session.ts';
import { NotFound } from '../../frame/not-found.tsx';
import { Page } from '../../frame/page.tsx';
import { SkeletonRows } from '../../parts/empty.tsx';
import { Field } from '../../parts/field.tsx';
import { Icon } from '../../parts/icon.tsx';
import { JsonView } from '../../parts/json-view.tsx';
import { Problem } from '../../parts/problem.tsx';
import { showToast } from '../../parts/toast.tsx';
import { FilterBuilder } from './filter-builder.tsx';
import { type FilterRow, filterOf, rowsOf } from './filter-rows.ts';

const ConfirmDialog = lazy(async () => ({ default: (await import('../../parts/dialog.tsx')).ConfirmDialog }));

const route = getRouteApi('/shell/factories/$factoryUid/automations/$automationUid');

/** Shows one automation, or the form of a new one (`new`): when it fires, whether this delivery would, and as whom. */
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
  // The form edits the first trigger of a webhook. Others stay as they are.
  const trigger = automation?.triggers.find(({ provider }) => provider === 'webhook');
  const others = (automation?.triggers ?? []).filter((each) => each !== trigger);
  const named = trigger?.filter?.webhook_ids;
  const [webhookIds, setWebhookIds] = useState<readonly string[]>(Array.isArray(named) ? named.map(String) : []);
  const [rows, setRows] = useState<readonly FilterRow[]>(() => rowsOf(trigger?.filter?.payload));
  const [tested, setTested] = useState<TestFilterResponse | undefined>();
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const [isDeleting, setDeleting] = useState(false);
  const webhooks = useQuery({
    queryKey: ['factory', factoryUid, 'webhooks'],
    queryFn: async () => (await client.listWebhooks({ params: { factoryUid } })).webhooks,
  });
  const hasWebhookTrigger = trigger !== undefined || automation === undefined;
  const save = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const data = new FormData(event.currentTarget);
    const payload = filterOf(rows);
    const body = {
      name: String(data.get('name') ?? '').trim(),
      prompt: String(data.get('prompt') ?? ''),
      overlap: overlapPolicies.find((policy) => policy === data.get('overlap')) ?? ('allow' as const),
      // The service replaces the whole automation: what the form does not show is sent as it is.
      ...(automation === undefined ? {} : { enabled: automation.enabled }),
      ...(automation?.agent === undefined ? {} : { agent: automation.agent }),
      ...(automation?.config === undefined ? {} : { config: automation.config }),
      ...(automation?.concurrency_key === undefined ? {} : { concurrency_key: automation.concurrency_key }),
      triggers: [
        ...(hasWebhookTrigger
          ? [
              {
                ...trigger,
                provider: 'webhook' as const,
                event: trigger?.event ?? 'received',
                filter: {
                  ...trigger?.filter,
                  webhook_ids:
                    webhookIds.length > 0 ? webhookIds : (webhooks.data ?? []).slice(0, 1).map(({ uid }) => uid),
                  ...(Object.keys(payload).length > 0 ? { payload } : {}),
                },
              },
            ]
          : []),
        ...others,
      ],
    };
    setBusy(true);
    setError(undefined);
    try {
      const saved =
        automation === undefined
          ? await client.createAutomation({ params: { factoryUid }, body })
          : await client.updateAutomation({ params: { factoryUid, automationUid: automation.uid }, body });
      await queries.invalidateQueries({ queryKey: ['factory', factoryUid] });
      await queries.invalidateQueries({ queryKey: ['automation', saved.uid] });
      showToast(`Saved ${saved.name}`);
      if (automation === undefined)
        await navigate({
          to: '/factories/$factoryUid/automations/$automationUid',
          params: { factoryUid, automationUid: saved.uid },
        });
    } catch (failure) {
      setError(failure);
    }
    setBusy(false);
  };
  const toggle = async () => {
    if (automation === undefined) return;
    const params = { factoryUid, automationUid: automation.uid };
    // The service replaces the whole automation.
    const { name, prompt, agent, triggers, config, overlap, concurrency_key: group } = automation;
    const set = async (enabled: boolean) => {
      await client.updateAutomation({
        params,
        body: {
          name,
          prompt,
          enabled,
          triggers,
          overlap,
          ...(agent === undefined ? {} : { agent }),
          ...(config === undefined ? {} : { config }),
          ...(group === undefined ? {} : { concurrency_key: group }),
        },
      });
      await queries.invalidateQueries({ queryKey: ['automation', automation.uid] });
    };
    try {
      await set(!automation.enabled);
      showToast(
        `${automation.enabled ? 'Disabled' : 'Enabled'} ${automation.name}`,
        () => void set(automation.enabled),
      );
    } catch (failure) {
      setError(failure);
    }
  };
  const faults = error === undefined ? undefined : failureOf(error).members;
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
        <form id={form} onSubmit={(event) => void save(event)}>
          <div className="form">
            {(automation?.problems ?? []).map((problem, index) => (
              <div key={index} className="note wait">
                <Icon name="warn" />
                <span>{visibleText(typeof problem === 'string' ? problem : JSON.stringify(problem))}</span>
              </div>
            ))}
            {automation?.last_spawn_error && <p className="note bad">{visibleText(automation.last_spawn_error)}</p>}
            <Field label="Name" fault={faults?.get('name')}>
              {(id) => (
                <input id={id} name="name" className="in" required maxLength={100} defaultValue={automation?.name} />
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
                  <FilterBuilder rows={rows} checks={tested?.checks ?? []} change={setRows} />
                </div>
              </>
            )}
            {others.length > 0 && (
              <details>
                <summary className="dim small">{`${others.length} other triggers, which stay as they are`}</summary>
                <JsonView value={others} />
              </details>
            )}
            <Field label="Then a run gets this prompt" fault={faults?.get('prompt')}>
              {(id) => (
                <textarea id={id} name="prompt" className="in" rows={8} required defaultValue={automation?.prompt} />
              )}
            </Field>
            <Field label="While a run is live" fault={faults?.get('overlap')}>
              {(id) => (
                <select id={id} name="overlap" className="in" defaultValue={automation?.overlap ?? 'allow'}>
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
            <button type="submit" className="btn pri" disabled={!may || isBusy}>
              {automation === undefined ? 'Create automation' : 'Save'}
            </button>
            {!may && <span className="hint">Your role is viewer: a member can change automations.</span>}
          </div>
        </form>
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

/** Compares the filter with a stored delivery or a pasted payload, while it is edited. */
function FilterTest({
  factoryUid,
  webhookIds,
  rows,
  result,
  setResult,
}: {
  factoryUid: string;
  webhookIds: readonly string[];
  rows: readonly FilterRow[];
  result: TestFilterResponse | undefined;
  setResult: (result: TestFilterResponse | undefined) => void;
}) {
  const client = useClient();
  const [pasted, setPasted] = useState('');
  const [deliveryId, setDeliveryId] = useState('');
  const [webhookUid] = webhookIds;
  const deliveries = useQuery({
    queryKey: ['webhook', webhookUid, 'accepted'],
    queryFn: async () =>
      (
        await client.listWebhookDeliveries({
          params: { factoryUid, webhookUid: webhookUid ?? '' },
          query: { label: 'ACCEPTED', limit: 20 },
        })
      ).deliveries,
    enabled: webhookUid !== undefined,
  });
  const filter = filterOf(rows);
  const payload = readJson(pasted);
  const test = useQuery({
    queryKey: ['test-filter', factoryUid, JSON.stringify(filter), deliveryId, pasted],
    queryFn: async () => {
      const tested = await client.testFilter({
        params: { factoryUid },
        body: { filter, ...(deliveryId === '' ? { payload } : { delivery_id: deliveryId }) },
      });
      setResult(tested);
      return tested;
    },
    enabled: Object.keys(filter).length > 0 && (deliveryId !== '' || payload !== undefined),
    retry: false,
    placeholderData: (before) => before,
  });
  return (
    <div className="form">
      <h2>Would it fire?</h2>
      <div className="field">
        <label htmlFor="stored">A delivery that came</label>
        <select id="stored" className="in" value={deliveryId} onChange={({ target }) => setDeliveryId(target.value)}>
          <option value="">none: the payload below</option>
          {(deliveries.data ?? []).map(({ delivery_id: id, event, received_at: at }) => (
            <option key={id} value={id}>
              {`${visibleText(event ?? 'event')}, ${new Date(at).toLocaleString()}`}
            </option>
          ))}
        </select>
      </div>
      {deliveryId === '' && (
        <div className="field">
          <label htmlFor="payload">A payload</label>
          <textarea
            id="payload"
            className="in mono"
            rows={8}
            placeholder='{"action": "opened"}'
            value={pasted}
            aria-invalid={pasted.trim() !== '' && payload === undefined}
            onChange={({ target }) => setPasted(target.value)}
          />
          {pasted.trim() !== '' && payload === undefined && <span className="small badc">This is not JSON.</span>}
        </div>
      )}
      <Problem error={test.error} />
      {result && test.data && (
        <div className="verdict" role="status">
          <div className="sum">
            <Icon name={result.would_trigger ? 'check' : 'x'} small className={result.would_trigger ? 'okc' : 'badc'} />
            <span className="md">
              {result.would_trigger ? 'It matches and would start a run' : 'It does not match'}
            </span>
          </div>
          <ul className="checks">
            {result.checks.map((check, index) => (
              <li key={index}>
                <Icon name={check.passed ? 'check' : 'x'} small className={check.passed ? 'okc' : 'badc'} />
                <span>
                  <code>{visibleText(check.path ?? 'body')}</code>{' '}
                  <span className="mut">{visibleText(check.reason)}</span>
                </span>
              </li>
            ))}
          </ul>
        </div>
      )}
      {Object.keys(filter).length === 0 && (
        <p className="hint">Without conditions each event of the webhooks starts a run.</p>
      )}
    </div>
  );
}

/** Returns the value of a JSON text; undefined: it is none. */
function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
