import type { EventSubscription } from '@runyard/contract/team/event-subscriptions';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { useClient, useSession } from '../../api/session.ts';
import { NotFound } from '../../frame/not-found.tsx';
import { useAttempts } from '../../parts/attempt.ts';
import { Crumbs, Fact, Facts, Note, Row, Text } from '../../parts/blocks.tsx';
import { Button } from '../../parts/controls.tsx';
import { dateText } from '../../parts/format.ts';
import { Icon } from '../../parts/icon.tsx';
import { Menu } from '../../parts/menu.tsx';
import { Problem } from '../../parts/problem.tsx';
import { useQuestion } from '../../parts/question.tsx';
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
  const [isChanging, setChanging] = useState(false);
  const { ask, dialog } = useQuestion();
  const { error, attempt } = useAttempts();
  if (subscription === undefined) return <NotFound what="subscription" />;
  const { id, name, url, events, enabled, filter } = subscription;
  const params = { subscriptionId: id };
  const title = visibleText(name ?? url);
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
  const rotate = () =>
    ask({
      title: `Give ${title} a new secret?`,
      text: 'For 24 hours deliveries carry a signature by each of the two, so that the receiver refuses none meanwhile.',
      action: 'Rotate the secret',
      run: async () => {
        const { secret } = await client.rotateEventSubscriptionSecret({ params });
        onSecret({ secret, hint: `For ${title}. The earlier secret signs too for 24 h` });
      },
    });
  const remove = () =>
    ask({
      title: `Delete ${title}?`,
      text: 'Its deliveries are deleted too, those that wait are not sent.',
      action: 'Delete the subscription',
      run: async () => {
        await client.deleteEventSubscription({ params });
        await refresh();
        await navigate({ to: '/settings/$tab', params: { tab: 'events' }, search: {} });
      },
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
            { label: 'Change…', run: () => setChanging(true) },
            { label: 'Rotate the secret…', run: rotate },
            { label: 'Delete…', isDangerous: true, run: remove },
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
        <Fact name="URL">
          <Text mono>{visibleText(url)}</Text>
        </Fact>
        <Fact name="Events">{events.join(', ')}</Fact>
        <Fact name="Runs">
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
        </Fact>
        <Fact name="State">
          <SubscriptionState subscription={subscription} />
        </Fact>
        <Fact name="Created">{dateText(Date.parse(subscription.created_at))}</Fact>
      </Facts>
      <Deliveries subscriptionId={id} isEnabled={enabled} />
      {isChanging && <SubscriptionDialog earlier={subscription} close={() => setChanging(false)} />}
      {dialog}
    </>
  );
}
