import type { Webhook } from '@runyard/contract/webhooks/webhooks';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { lazy, type ReactNode, Suspense, useRef, useState } from 'react';
import { useRead } from '../../api/read.ts';
import { useClient, useMay } from '../../api/session.ts';
import { Crumb } from '../../frame/crumb.tsx';
import { DetailPage } from '../../frame/detail-page.tsx';
import { Page } from '../../frame/page.tsx';
import { oneOf } from '../../frame/search.ts';
import { Badge, Row, Split, Text } from '../../parts/blocks.tsx';
import { CommandBlock } from '../../parts/copy.tsx';
import { Empty } from '../../parts/empty.tsx';
import { useKeys } from '../../parts/keys.ts';
import { MoreMenu } from '../../parts/more-menu.tsx';
import { type Change, useOptimistic } from '../../parts/optimistic.ts';
import { Problem } from '../../parts/problem.tsx';
import { QueryTabs } from '../../parts/query-tabs.tsx';
import { AskButton } from '../../parts/question.tsx';
import { RoleButton } from '../../parts/role-button.tsx';
import { Delivery, labelWord } from './delivery.tsx';
import { DeliveryRows, useDeliveryList } from './delivery-list.tsx';
import { senderOf, senders } from './senders.ts';
import styles from './webhooks.module.css';

const RenameDialog = lazy(async () => ({ default: (await import('./rename-dialog.tsx')).RenameDialog }));
const RotateDialog = lazy(async () => ({ default: (await import('./rotate-dialog.tsx')).RotateDialog }));
const SimulateDialog = lazy(async () => ({ default: (await import('./simulate-dialog.tsx')).SimulateDialog }));

const labels = ['ACCEPTED', 'DUPLICATE', 'REJECTED_AUTH', 'REJECTED_INVALID_JSON', 'REJECTED_TOO_LARGE'] as const;

/** Shows a webhook and its deliveries. For each delivery, shows whether it started a run, and the reason if it did not. */
export function WebhookScreen() {
  const { factoryUid = '', webhookUid = '' } = useParams({ strict: false });
  const webhook = useRead(['webhook', webhookUid], (client) =>
    client.getWebhook({ params: { factoryUid, webhookUid } }),
  );
  const crumbs = (
    <Crumb to="/factories/$factoryUid" params={{ factoryUid }}>
      Factory
    </Crumb>
  );
  return (
    <DetailPage what="webhook" crumbs={crumbs} query={webhook}>
      {(data) => <WebhookPage key={webhookUid} webhook={data} factoryUid={factoryUid} crumbs={crumbs} />}
    </DetailPage>
  );
}

type Opened = 'rename' | 'rotate' | 'simulate' | undefined;

function WebhookPage({ webhook, factoryUid, crumbs }: { webhook: Webhook; factoryUid: string; crumbs: ReactNode }) {
  const { enabled, name, uid } = webhook;
  const params = { factoryUid, webhookUid: uid };
  const { deliveryId } = useParams({ strict: false });
  const label = oneOf(useSearch({ strict: false, select: (search) => search.label }));
  const wanted = labels.find((each) => each === label);
  const client = useClient();
  const queries = useQueryClient();
  const navigate = useNavigate();
  const may = useMay('member');
  const [open, setOpen] = useState<Opened>();
  const { error, toggle, rename } = useChanges(webhook, factoryUid);
  const filters = { webhook_uid: uid, ...(wanted ? { label: wanted } : {}) };
  const deliveries = useDeliveryList(filters, deliveryId !== undefined);
  // Remember the first delivery that was shown, so that a new delivery does not replace it.
  const first = useRef<string>(undefined);
  first.current ??= deliveries.rows[0]?.delivery_id;
  const selected = deliveryId ?? first.current;
  useKeys([{ key: 't', does: 'Simulate a delivery', run: () => may && setOpen('simulate') }]);
  const close = () => setOpen(undefined);
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
          <AskButton
            needs="member"
            kind="danger"
            question={{
              title: `Delete ${name}?`,
              text: 'Senders get 404 at once. Its deliveries are deleted; runs that they started stay.',
              action: 'Delete the webhook',
              run: async () => {
                await client.deleteWebhook({ params });
                await queries.invalidateQueries({ queryKey: ['factory', factoryUid] });
                await navigate({ to: '/factories/$factoryUid', params: { factoryUid } });
              },
            }}
          >
            Delete…
          </AskButton>
          <MoreMenu
            path={`/factory/${factoryUid}/webhooks/${uid}`}
            entries={[{ label: 'Rename…', run: () => setOpen('rename'), disabled: !may && 'needs the role member' }]}
          />
        </>
      }
    >
      <Split list>
        <div className={styles.deliveries}>
          <Head webhook={webhook} />
          <Problem error={error} />
          <QueryTabs
            label="Outcomes"
            tabs={[undefined, ...labels.slice(0, 3)].map((each) => ({
              name: each === undefined ? 'All' : labelWord(each),
              search: { label: each },
              isCurrent: each === wanted,
            }))}
          />
          <DeliveryRows
            deliveries={deliveries}
            selected={selected}
            search={wanted ? { label: wanted } : {}}
            empty={
              <Empty title="No delivery has arrived yet" command={sampleRequest(webhook)}>
                {`${senders[senderOf(webhook)].setup} A first event, such as that of the sender's test button, appears here at once.`}
              </Empty>
            }
          />
        </div>
        <div>{selected !== undefined && <Delivery key={selected} params={{ ...params, deliveryId: selected }} />}</div>
      </Split>
      <Suspense>
        {open === 'simulate' && (
          <SimulateDialog
            params={params}
            scheme={webhook.signature_scheme}
            deliveries={deliveries.rows.filter(({ label: each }) => each === 'ACCEPTED').slice(0, 20)}
            close={close}
          />
        )}
        {open === 'rename' && <RenameDialog name={name} rename={rename} close={close} />}
        {open === 'rotate' && <RotateDialog webhook={webhook} params={params} close={close} />}
      </Suspense>
    </Page>
  );
}

/** Returns functions that change a webhook. The page shows the change at once. */
function useChanges({ uid, enabled, name }: Webhook, factoryUid: string) {
  const client = useClient();
  const params = { factoryUid, webhookUid: uid };
  const changed = useOptimistic();
  const change = <Value,>(wanted: Pick<Change<Webhook, Value>, 'from' | 'to' | 'put' | 'send' | 'says'>) =>
    changed.change({ queryKey: ['webhook', uid], alsoReads: [['factory', factoryUid]], ...wanted });
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
  return { error: changed.error, toggle, rename };
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
    <div className={styles.webhookHead}>
      <Row wrap>
        <Badge>{webhook.signature_scheme ?? webhook.auth_mode.replaceAll('_', ' ')}</Badge>
        {webhook.enabled ? <Badge tone="good">on</Badge> : <Badge tone="bad">off</Badge>}
        {webhook.disabled_reason && (
          <Text tone="bad" small>
            {visibleText(webhook.disabled_reason)}
          </Text>
        )}
      </Row>
      <CommandBlock command={webhook.url} what="Copy address" />
    </div>
  );
}
