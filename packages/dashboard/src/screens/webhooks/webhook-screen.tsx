import type { Webhook } from '@runyard/contract/webhooks/webhooks';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { lazy, Suspense, useRef, useState } from 'react';
import { statusOf } from '../../api/problem.ts';
import { useClient, useMay } from '../../api/session.ts';
import { NotFound } from '../../frame/not-found.tsx';
import { Page } from '../../frame/page.tsx';
import { oneOf } from '../../frame/search.ts';
import { CommandBlock } from '../../parts/copy.tsx';
import { Empty, SkeletonRows } from '../../parts/empty.tsx';
import { useKeys } from '../../parts/keys.ts';
import { MoreMenu } from '../../parts/more-menu.tsx';
import { type Change, useOptimistic } from '../../parts/optimistic.ts';
import { Problem } from '../../parts/problem.tsx';
import { RoleButton } from '../../parts/role-button.tsx';
import { Delivery, labelWord } from './delivery.tsx';
import { DeliveryRows, useDeliveryList } from './delivery-list.tsx';
import { senderOf, senders } from './senders.ts';

const ConfirmDialog = lazy(async () => ({ default: (await import('../../parts/dialog.tsx')).ConfirmDialog }));
const RenameDialog = lazy(async () => ({ default: (await import('./rename-dialog.tsx')).RenameDialog }));
const RotateDialog = lazy(async () => ({ default: (await import('./rotate-dialog.tsx')).RotateDialog }));

const SimulateDialog = lazy(async () => ({ default: (await import('./simulate-dialog.tsx')).SimulateDialog }));

const labels = ['ACCEPTED', 'DUPLICATE', 'REJECTED_AUTH', 'REJECTED_INVALID_JSON', 'REJECTED_TOO_LARGE'] as const;

/** Shows a webhook and its deliveries. For each delivery, shows whether it started a run, and the reason if it did not. */
export function WebhookScreen() {
  const { factoryUid = '', webhookUid = '', deliveryId } = useParams({ strict: false });
  const label = oneOf(useSearch({ strict: false, select: (search) => search.label }));
  const client = useClient();
  const may = useMay('member');
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [open, setOpen] = useState<'delete' | 'rename' | 'rotate' | 'simulate' | undefined>();
  const changed = useOptimistic();
  const params = { factoryUid, webhookUid };
  const webhook = useQuery({
    queryKey: ['webhook', webhookUid],
    queryFn: async () => await client.getWebhook({ params }),
  });
  const wanted = labels.find((each) => each === label);
  const filters = { webhook_uid: webhookUid, ...(wanted ? { label: wanted } : {}) };
  const deliveries = useDeliveryList(filters, deliveryId !== undefined);
  const first = useRef<string>(undefined);
  useKeys([{ key: 't', does: 'Simulate a delivery', run: () => may && setOpen('simulate') }]);
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
  // Remember the first delivery that was shown, so that a new delivery does not replace it.
  first.current ??= deliveries.rows[0]?.delivery_id;
  const selected = deliveryId ?? first.current;
  const { enabled, name } = webhook.data;
  const change = <Value,>(wanted: Pick<Change<Webhook, Value>, 'from' | 'to' | 'put' | 'send' | 'says'>) =>
    changed.change({ queryKey: ['webhook', webhookUid], alsoReads: [['factory', factoryUid]], ...wanted });
  const toggle = () =>
    change({
      from: enabled,
      to: !enabled,
      put: (data, on) => ({ ...data, enabled: on }),
      send: (on) => (on ? client.enableWebhook({ params }) : client.disableWebhook({ params })),
      says: `${enabled ? 'Disabled' : 'Enabled'} ${name}`,
    });
  const rename = (to: string) =>
    change({
      from: name,
      to,
      put: (data, text) => ({ ...data, name: text }),
      send: (text) => client.updateWebhook({ params, body: { name: text } }),
      says: `Renamed to ${to}`,
    });
  return (
    <Page
      title={name}
      crumbs={crumbs}
      actions={
        <>
          <RoleButton needs="member" run={() => void toggle()}>
            {enabled ? 'Disable' : 'Enable'}
          </RoleButton>
          <RoleButton needs="member" run={() => setOpen('simulate')}>
            Simulate…
          </RoleButton>
          <RoleButton needs="member" run={() => setOpen('rotate')}>
            Rotate secret…
          </RoleButton>
          <RoleButton needs="member" className="btn dan" run={() => setOpen('delete')}>
            Delete…
          </RoleButton>
          <MoreMenu
            path={`/factory/${factoryUid}/webhooks/${webhook.data.uid}`}
            entries={[{ label: 'Rename…', run: () => setOpen('rename'), disabled: !may && 'needs the role member' }]}
          />
        </>
      }
    >
      <div className="split l">
        <div>
          <Head webhook={webhook.data} />
          <Problem error={changed.error} />
          <nav className="tabs" aria-label="Outcomes">
            <Link
              to="."
              search={{}}
              activeOptions={{ exact: true }}
              aria-current={wanted === undefined ? 'page' : undefined}
            >
              All
            </Link>
            {labels.slice(0, 3).map((each) => (
              <Link
                key={each}
                to="."
                search={{ label: each }}
                activeOptions={{ exact: true }}
                aria-current={wanted === each ? 'page' : undefined}
              >
                {labelWord(each)}
              </Link>
            ))}
          </nav>
          <DeliveryRows
            deliveries={deliveries}
            selected={selected}
            search={wanted ? { label: wanted } : {}}
            empty={
              <Empty title="No delivery has arrived yet" command={sampleRequest(webhook.data)}>
                {`${senders[senderOf(webhook.data)].setup} A first event, such as that of the sender's test button, appears here at once.`}
              </Empty>
            }
          />
        </div>
        <div>{selected !== undefined && <Delivery key={selected} params={{ ...params, deliveryId: selected }} />}</div>
      </div>
      <Suspense>
        {open === 'simulate' && (
          <SimulateDialog
            params={params}
            scheme={webhook.data.signature_scheme}
            deliveries={deliveries.rows.filter(({ label: each }) => each === 'ACCEPTED').slice(0, 20)}
            close={() => setOpen(undefined)}
          />
        )}
        {open === 'rename' && <RenameDialog name={name} rename={rename} close={() => setOpen(undefined)} />}
        {open === 'rotate' && <RotateDialog webhook={webhook.data} params={params} close={() => setOpen(undefined)} />}
        {open === 'delete' && (
          <ConfirmDialog
            title={`Delete ${name}?`}
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

/**
 * Returns a command that sends an event to the webhook. If the webhook requires signatures, the command cannot work, because only the
 * sender can sign an event.
 */
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
