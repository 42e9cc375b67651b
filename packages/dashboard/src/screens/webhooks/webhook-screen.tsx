import type { AutomationOutcome, Webhook, WebhookDelivery } from '@runyard/contract/webhooks/webhooks';
import { visibleText } from '@runyard/contract/wire/visible';
import { useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { lazy, Suspense, useState } from 'react';
import { statusOf } from '../../api/problem.ts';
import { useClient, useMay } from '../../api/session.ts';
import { NotFound } from '../../frame/not-found.tsx';
import { Page } from '../../frame/page.tsx';
import { oneOf } from '../../frame/search.ts';
import { CommandBlock } from '../../parts/copy.tsx';
import { Empty, SkeletonRows } from '../../parts/empty.tsx';
import { sizeText } from '../../parts/format.ts';
import { Icon } from '../../parts/icon.tsx';
import { JsonView } from '../../parts/json-view.tsx';
import { Problem } from '../../parts/problem.tsx';
import { Ago } from '../../parts/time.tsx';

const ConfirmDialog = lazy(async () => ({ default: (await import('../../parts/dialog.tsx')).ConfirmDialog }));
const RotateDialog = lazy(async () => ({ default: (await import('./rotate-dialog.tsx')).RotateDialog }));

const labels = ['ACCEPTED', 'DUPLICATE', 'REJECTED_AUTH', 'REJECTED_INVALID_JSON', 'REJECTED_TOO_LARGE'] as const;

/** Returns a label in sentence case. */
const labelWord = (label: string): string => {
  const words = label.toLowerCase().replaceAll('_', ' ');
  return words.slice(0, 1).toUpperCase() + words.slice(1);
};

/** Shows a webhook and its deliveries: did it arrive, did it fire, and why not? */
export function WebhookScreen() {
  const { factoryUid = '', webhookUid = '', deliveryId } = useParams({ strict: false });
  const label = oneOf(useSearch({ strict: false, select: (search) => search.label }));
  const client = useClient();
  const may = useMay('member');
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [open, setOpen] = useState<'delete' | 'rotate' | undefined>();
  const [error, setError] = useState<unknown>();
  const params = { factoryUid, webhookUid };
  const webhook = useQuery({
    queryKey: ['webhook', webhookUid],
    queryFn: async () => await client.getWebhook({ params }),
  });
  const wanted = labels.find((each) => each === label);
  const deliveries = useInfiniteQuery({
    queryKey: ['webhook', webhookUid, 'deliveries', wanted],
    queryFn: async ({ pageParam }) =>
      await client.listWebhookDeliveries({
        params,
        query: { limit: 50, ...(wanted ? { label: wanted } : {}), ...(pageParam === '' ? {} : { cursor: pageParam }) },
      }),
    initialPageParam: '',
    getNextPageParam: ({ page_info: page }) => (page.has_next_page ? page.next_cursor : undefined),
    refetchInterval: 5_000,
  });
  const crumbs = (
    <Link to="/factories/$factoryUid" params={{ factoryUid }} className="hide-m">
      Factory
    </Link>
  );
  if (statusOf(webhook.error) === 404)
    return (
      <Page title="Webhook" crumbs={crumbs}>
        <NotFound what="webhook" />
      </Page>
    );
  if (webhook.data === undefined)
    return (
      <Page title="Webhook" crumbs={crumbs}>
        {webhook.error ? <Problem error={webhook.error} /> : <SkeletonRows />}
      </Page>
    );
  const rows = deliveries.data?.pages.flatMap((page) => page.deliveries) ?? [];
  const selected = deliveryId ?? rows[0]?.delivery_id;
  const toggle = async () => {
    setError(undefined);
    try {
      await (webhook.data.enabled ? client.disableWebhook({ params }) : client.enableWebhook({ params }));
    } catch (failure) {
      setError(failure);
    }
    await queries.invalidateQueries({ queryKey: ['webhook', webhookUid] });
  };
  return (
    <Page
      title={webhook.data.name}
      crumbs={crumbs}
      actions={
        <>
          <button type="button" className="btn" disabled={!may} onClick={() => void toggle()}>
            {webhook.data.enabled ? 'Disable' : 'Enable'}
          </button>
          <button type="button" className="btn" disabled={!may} onClick={() => setOpen('rotate')}>
            Rotate secret…
          </button>
          <button type="button" className="btn dan" disabled={!may} onClick={() => setOpen('delete')}>
            Delete…
          </button>
        </>
      }
    >
      <div className="split l">
        <div>
          <Head webhook={webhook.data} />
          <Problem error={error} />
          <nav className="tabs" aria-label="Outcomes">
            <Link to="." search={{}} {...(wanted === undefined ? { 'aria-current': 'page' as const } : {})}>
              All
            </Link>
            {labels.slice(0, 3).map((each) => (
              <Link
                key={each}
                to="."
                search={{ label: each }}
                {...(wanted === each ? { 'aria-current': 'page' as const } : {})}
              >
                {labelWord(each)}
              </Link>
            ))}
          </nav>
          {deliveries.error && <Problem error={deliveries.error} />}
          {rows.length === 0 && !deliveries.isPending && (
            <Empty title="Nothing has arrived yet" command={sampleRequest(webhook.data)}>
              Send a first event, or use the test button of the sender. It appears here at once.
            </Empty>
          )}
          {rows.map((delivery) => (
            <Link
              key={delivery.delivery_id}
              className="dl-row"
              to="/factories/$factoryUid/webhooks/$webhookUid/deliveries/$deliveryId"
              params={{ factoryUid, webhookUid, deliveryId: delivery.delivery_id }}
              search={wanted ? { label: wanted } : {}}
              {...(delivery.delivery_id === selected ? { 'aria-current': 'true' as const } : {})}
            >
              <Label delivery={delivery} />
              <span className="cut">{visibleText(delivery.event ?? delivery.identity ?? delivery.delivery_id)}</span>
              <Ago time={delivery.received_at} className="dim small" />
              <span className="sub cut">{summaryOf(delivery)}</span>
            </Link>
          ))}
          {deliveries.hasNextPage && (
            <p className="more">
              <button type="button" className="btn sm" onClick={() => void deliveries.fetchNextPage()}>
                Older deliveries
              </button>
            </p>
          )}
        </div>
        <div>{selected !== undefined && <Delivery key={selected} params={{ ...params, deliveryId: selected }} />}</div>
      </div>
      <Suspense>
        {open === 'rotate' && <RotateDialog params={params} close={() => setOpen(undefined)} />}
        {open === 'delete' && (
          <ConfirmDialog
            title={`Delete ${webhook.data.name}?`}
            action="Delete the webhook"
            run={async () => {
              await client.deleteWebhook({ params });
              await queries.invalidateQueries({ queryKey: ['factory', factoryUid] });
              await navigate({ to: '/factories/$factoryUid', params: { factoryUid } });
            }}
            close={() => setOpen(undefined)}
          >
            Senders get 404 at once. Its deliveries are deleted; runs that they started stay.
          </ConfirmDialog>
        )}
      </Suspense>
    </Page>
  );
}

/** Returns a command that sends an event, where a person can: signed ones only their sender can make. */
const sampleRequest = ({ url, auth_mode: mode }: Webhook): string =>
  mode === 'signature'
    ? `curl -i ${url} -d '{}'   # answers 401: only the sender can sign`
    : `curl -i ${url} -H "Authorization: Bearer $SECRET" -H 'Content-Type: application/json' -d '{"type": "test"}'`;

function Head({ webhook }: { webhook: Webhook }) {
  return (
    <div className="head">
      <div className="row wrap">
        <span className="tag">{webhook.signature_scheme ?? webhook.auth_mode.replaceAll('_', ' ')}</span>
        {webhook.enabled ? <span className="tag ok">on</span> : <span className="tag bad">off</span>}
        {webhook.disabled_reason && <span className="badc small">{visibleText(webhook.disabled_reason)}</span>}
      </div>
      <CommandBlock command={webhook.url} what="Copy address" />
    </div>
  );
}

function Label({ delivery }: { delivery: WebhookDelivery }) {
  const isAccepted = delivery.label === 'ACCEPTED';
  const className = isAccepted ? 'okc' : delivery.label === 'DUPLICATE' ? 'dim' : 'badc';
  return (
    <span className={`lb ${className}`}>
      <Icon name={isAccepted ? 'check' : delivery.label === 'DUPLICATE' ? 'copy' : 'x'} small />
      {labelWord(delivery.label.replace('REJECTED_', ''))}
    </span>
  );
}

/** Returns what became of a delivery, in a line. */
function summaryOf({ reason, runs = [], automations = [] }: WebhookDelivery): string {
  if (reason) return visibleText(reason);
  if (runs.length > 0) return runs.length === 1 ? 'started a run' : `started ${runs.length} runs`;
  const matched = automations.filter((each) => each.matched);
  if (matched.length > 0) return visibleText(matched[0]?.reason ?? 'matched, and started no run');
  return automations.length === 0 ? 'no automation selects this webhook' : 'no automation matched';
}

/** Shows one delivery: what each automation made of it, and its payload. */
function Delivery({ params }: { params: { factoryUid: string; webhookUid: string; deliveryId: string } }) {
  const client = useClient();
  const may = useMay('member');
  const navigate = useNavigate();
  const [error, setError] = useState<unknown>();
  const { data, error: readError } = useQuery({
    queryKey: ['delivery', params.deliveryId],
    queryFn: async () => await client.getWebhookDelivery({ params }),
  });
  const automations = useQuery({
    queryKey: ['factory', params.factoryUid, 'automations'],
    queryFn: async () => (await client.listAutomations({ params: { factoryUid: params.factoryUid } })).automations,
  });
  const replay = async () => {
    setError(undefined);
    try {
      const answer = await client.replayWebhookDelivery({ params });
      if ('delivery_id' in answer && typeof answer.delivery_id === 'string')
        await navigate({
          to: '/factories/$factoryUid/webhooks/$webhookUid/deliveries/$deliveryId',
          params: { ...params, deliveryId: answer.delivery_id },
        });
    } catch (failure) {
      setError(failure);
    }
  };
  if (statusOf(readError) === 404) return <NotFound what="delivery" />;
  if (readError) return <Problem error={readError} />;
  if (data === undefined) return <SkeletonRows count={4} />;
  const nameOf = (id: string): string => automations.data?.find(({ uid }) => uid === id)?.name ?? id;
  return (
    <div className="form">
      <div className="row wrap">
        <Label delivery={data} />
        <span className="mono cut grow">{visibleText(data.event ?? data.delivery_id)}</span>
        <span className="dim small">{sizeText(data.size_bytes)}</span>
        <button
          type="button"
          className="btn"
          disabled={!may || data.label !== 'ACCEPTED'}
          onClick={() => void replay()}
        >
          <Icon name="again" small />
          Replay
        </button>
      </div>
      <Problem error={error} />
      {data.reason && <p className="note wait">{visibleText(data.reason)}</p>}
      {data.replay_of && <p className="mut small">{`A replay of ${data.replay_of}`}</p>}
      <section className="stack s2">
        <h2>What became of it</h2>
        {(data.automations ?? []).length === 0 && <p className="dim">{summaryOf(data)}</p>}
        {data.automations?.map((outcome) => (
          <Verdict
            key={outcome.automation_id}
            outcome={outcome}
            name={nameOf(outcome.automation_id)}
            factoryUid={params.factoryUid}
          />
        ))}
      </section>
      {data.headers && (
        <section className="stack s2">
          <h2>Headers</h2>
          <JsonView value={data.headers} />
        </section>
      )}
      <section className="stack s2">
        <h2>Payload</h2>
        {data.payload === undefined ? <p className="dim">Not stored.</p> : <JsonView value={data.payload} />}
      </section>
    </div>
  );
}

function Verdict({ outcome, name, factoryUid }: { outcome: AutomationOutcome; name: string; factoryUid: string }) {
  const started = outcome.run_id !== undefined;
  return (
    <div className="verdict">
      <div className="sum">
        <Icon name={started ? 'check' : outcome.matched ? 'pause' : 'x'} small className={started ? 'okc' : 'dim'} />
        <span>
          <Link
            className="md"
            to="/factories/$factoryUid/automations/$automationUid"
            params={{ factoryUid, automationUid: outcome.automation_id }}
          >
            {visibleText(name)}
          </Link>{' '}
          <span className="mut">{visibleText(outcome.reason ?? (started ? 'matched and started a run' : ''))}</span>
        </span>
        {outcome.run_id && (
          <Link className="btn sm" to="/runs/$runId" params={{ runId: outcome.run_id }}>
            Open run
          </Link>
        )}
      </div>
    </div>
  );
}
