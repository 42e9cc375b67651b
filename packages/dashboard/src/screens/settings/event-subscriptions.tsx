import type { EventSubscription } from '@runyard/contract/team/event-subscriptions';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useState } from 'react';
import { useClient, useSession } from '../../api/session.ts';
import { oneOf } from '../../frame/search.ts';
import { P, Text } from '../../parts/blocks.tsx';
import { Button } from '../../parts/controls.tsx';
import { SecretOnceDialog } from '../../parts/dialog.tsx';
import { Empty } from '../../parts/empty.tsx';
import { Loaded } from '../../parts/loaded.tsx';
import { look } from '../../parts/look.ts';
import { Cell, Table } from '../../parts/table.tsx';
import { Ago } from '../../parts/time.tsx';
import { Section } from './section.tsx';
import { type MadeSecret, SubscriptionDialog } from './subscription-dialog.tsx';
import { SubscriptionView } from './subscription-view.tsx';

const route = getRouteApi('/shell/settings/$tab');

/** The addresses to which events of runs are delivered. `?subscription=ID` opens one subscription with its deliveries. */
export function EventSubscriptions() {
  const client = useClient();
  const { team } = useSession();
  const chosen = oneOf(route.useSearch({ select: (search) => search.subscription }));
  const subscriptions = useQuery({
    queryKey: ['event-subscriptions', team.uid],
    queryFn: async () => (await client.listEventSubscriptions()).subscriptions,
  });
  const [isCreating, setCreating] = useState(false);
  const [made, setMade] = useState<MadeSecret | undefined>();
  const button = (
    <Button kind="primary" icon="plus" onClick={() => setCreating(true)}>
      New subscription
    </Button>
  );
  return (
    <>
      <Loaded query={subscriptions}>
        {(list) =>
          chosen === undefined ? (
            <>
              <Section
                title="Event subscriptions"
                about="Each subscription gets a signed POST when a run is created, starts, waits for an answer or ends."
                action={list.length === 0 ? undefined : button}
              />
              {list.length === 0 ? (
                <Empty title="No event subscription yet" action={button}>
                  A subscription is an address of yours. Runyard tells it what runs do, at least once for each event,
                  signed as Standard Webhooks says.
                </Empty>
              ) : (
                <SubscriptionTable list={list} />
              )}
            </>
          ) : (
            <SubscriptionView key={chosen} subscription={list.find(({ id }) => id === chosen)} onSecret={setMade} />
          )
        }
      </Loaded>
      {isCreating && <SubscriptionDialog onMade={setMade} close={() => setCreating(false)} />}
      {made && (
        <SecretOnceDialog
          title="Copy the signing secret now"
          value={made.secret}
          hint={made.hint}
          close={() => setMade(undefined)}
        >
          <P tone="muted">The receiver checks the header webhook-signature with it, as Standard Webhooks says.</P>
        </SecretOnceDialog>
      )}
    </>
  );
}

function SubscriptionTable({ list }: { list: readonly EventSubscription[] }) {
  return (
    <Table
      aria-label="Event subscriptions"
      columns={[{ name: 'Subscription' }, { name: 'Events', width: 280 }, { name: 'State', width: 200 }]}
    >
      {list.map((subscription) => (
        <tr key={subscription.id}>
          <td>
            <Link
              to="/settings/$tab"
              params={{ tab: 'events' }}
              search={{ subscription: subscription.id }}
              className={look({ medium: true })}
            >
              {visibleText(subscription.name ?? subscription.url)}
            </Link>
            {subscription.name !== undefined && <Text tone="dim"> {visibleText(subscription.url)}</Text>}
          </td>
          <Cell tone="muted">{subscription.events.join(', ')}</Cell>
          <td>
            <SubscriptionState subscription={subscription} />
          </td>
        </tr>
      ))}
    </Table>
  );
}

/** Shows whether a subscription is active, and whether its deliveries succeed. */
export function SubscriptionState({ subscription }: { subscription: EventSubscription }) {
  if (!subscription.enabled)
    return (
      <Text tone="dim">{subscription.disabled_reason === undefined ? 'disabled' : 'disabled by the service'}</Text>
    );
  if (subscription.failing_since !== undefined)
    return (
      <Text tone="bad">
        failing for <Ago time={subscription.failing_since} />
      </Text>
    );
  return <Text tone="muted">enabled</Text>;
}
