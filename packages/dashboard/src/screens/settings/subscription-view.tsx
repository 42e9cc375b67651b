import type { EventSubscription } from '@runyard/contract/team/event-subscriptions';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { useClient, useSession } from '../../api/session.ts';
import { NotFound } from '../../frame/not-found.tsx';
import { useAttempts } from '../../parts/attempt.ts';
import { Crumbs, Facts, Note, Row, Text } from '../../parts/blocks.tsx';
import { Button } from '../../parts/controls.tsx';
import { ConfirmDialog } from '../../parts/dialog.tsx';
import { dateText } from '../../parts/format.ts';
import { Icon } from '../../parts/icon.tsx';
import { Menu } from '../../parts/menu.tsx';
import { Problem } from '../../parts/problem.tsx';
import { showToast } from '../../parts/toast.tsx';
import { Deliveries } from './deliveries.tsx';
import { SubscriptionState } from './event-subscriptions.tsx';
import { type MadeSecret, SubscriptionDialog } from './subscription-dialog.tsx';

/** Shows one subscription: its filter, its actions, and its deliveries. */
export function SubscriptionView({
  subscription,
  onSecret,
}: {
  subscription: EventSubscription | undefined;
  onSecret: (made: MadeSecret) => void;
}) {
  const client = useClient();
  const queries = useQueryClient();
  const navigate = useNavigate();
  const { team } = useSession();
  const [open, setOpen] = useState<'change' | 'rotate' | 'delete' | undefined>();
  const { error, attempt } = useAttempts();
  if (subscription === undefined) return <NotFound what="subscription" />;
  const { id, name, url, events, enabled, filter } = subscription;
  const params = { subscriptionId: id };
  const title = visibleText(name ?? url);
  const close = () => setOpen(undefined);
  const refresh = async () => await queries.invalidateQueries({ queryKey: ['event-subscriptions', team.uid] });
  const refreshDeliveries = async () => await queries.invalidateQueries({ queryKey: ['event-deliveries', id] });
  const enable = async (isEnabled: boolean) => {
    await client.updateEventSubscription({ params, body: { enabled: isEnabled } });
    await refresh();
  };
  const toggle = () =>
    attempt(async () => {
      await enable(!enabled);
      showToast(
        `${title} is ${enabled ? 'disabled' : 'enabled'}.`,
        () => void attempt(async () => await enable(enabled)),
      );
    });
  const ping = () =>
    attempt(async () => {
      await client.testEventSubscription({ params });
      await refreshDeliveries();
      showToast('The ping waits to be sent. Its delivery is in the list.');
    });
  return (
    <>
      <Row>
        <Text as="div" grow>
          <Crumbs>
            <Link to="/settings/$tab" params={{ tab: 'events' }} search={{}}>
              Event subscriptions
            </Link>
            <span aria-hidden="true">/</span>
            <Text as="h2" cut>
              {title}
            </Text>
          </Crumbs>
        </Text>
        <Button onClick={() => void ping()}>Send a ping</Button>
        <Button onClick={() => void toggle()}>{enabled ? 'Disable' : 'Enable'}</Button>
        <Menu
          label={`Actions for ${title}`}
          kind="ghost"
          icon="more"
          entries={[
            { label: 'Change…', run: () => setOpen('change') },
            { label: 'Rotate the secret…', run: () => setOpen('rotate') },
            { label: 'Delete…', isDangerous: true, run: () => setOpen('delete') },
          ]}
        />
      </Row>
      <Problem error={error} />
      {subscription.disabled_reason !== undefined && (
        <Note tone="bad">
          <Icon name="warn" />
          <span>{visibleText(subscription.disabled_reason)}</span>
        </Note>
      )}
      <Facts>
        <dt>URL</dt>
        <Text as="dd" mono>
          {visibleText(url)}
        </Text>
        <dt>Events</dt>
        <dd>{events.join(', ')}</dd>
        <dt>Runs</dt>
        <dd>
          {filter === undefined
            ? 'all of the team'
            : visibleText(
                [
                  filter.name === undefined ? '' : `named ${filter.name}`,
                  filter.source === undefined ? '' : `created by ${filter.source}`,
                  ...Object.entries(filter.metadata ?? {}).map(([key, value]) => `${key}=${value}`),
                ]
                  .filter(Boolean)
                  .join(', '),
              )}
        </dd>
        <dt>State</dt>
        <dd>
          <SubscriptionState subscription={subscription} />
        </dd>
        <dt>Created</dt>
        <dd>{dateText(Date.parse(subscription.created_at))}</dd>
      </Facts>
      <Deliveries subscriptionId={id} isEnabled={enabled} />
      {open === 'change' && <SubscriptionDialog earlier={subscription} close={close} />}
      {open === 'rotate' && (
        <ConfirmDialog
          title={`Give ${title} a new secret?`}
          action="Rotate the secret"
          run={async () => {
            const { secret } = await client.rotateEventSubscriptionSecret({ params });
            onSecret({ secret, hint: `For ${title}. The earlier secret signs too for 24 h` });
          }}
          close={close}
        >
          For 24 hours deliveries carry a signature by each of the two, so that the receiver refuses none meanwhile.
        </ConfirmDialog>
      )}
      {open === 'delete' && (
        <ConfirmDialog
          title={`Delete ${title}?`}
          action="Delete the subscription"
          run={async () => {
            await client.deleteEventSubscription({ params });
            await refresh();
            await navigate({ to: '/settings/$tab', params: { tab: 'events' }, search: {} });
          }}
          close={close}
        >
          Its deliveries are deleted too, those that wait are not sent.
        </ConfirmDialog>
      )}
    </>
  );
}
