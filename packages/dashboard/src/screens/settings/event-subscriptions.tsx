import type { EventSubscription } from '@runyard/contract/team/event-subscriptions';
import { visibleText } from '@runyard/contract/wire/visible';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useState } from 'react';
import { useTeamRead } from '../../api/read.ts';
import { oneOf } from '../../frame/search.ts';
import { P, Text } from '../../parts/blocks.tsx';
import { Button } from '../../parts/controls.tsx';
import { DataTable } from '../../parts/data-table.tsx';
import { SecretOnceDialog } from '../../parts/dialog.tsx';
import { Empty } from '../../parts/empty.tsx';
import { Loaded } from '../../parts/loaded.tsx';
import { look } from '../../parts/look.ts';
import { Ago } from '../../parts/time.tsx';
import { Section } from './section.tsx';
import { type MadeSecret, SubscriptionDialog } from './subscription-dialog.tsx';
import { SubscriptionView } from './subscription-view.tsx';

const route = getRouteApi('/shell/settings/$tab');

/** The addresses to which events of runs are delivered. `?subscription=ID` opens one subscription with its deliveries. */
export function EventSubscriptions() {
  const chosen = oneOf(route.useSearch({ select: (search) => search.subscription }));
  const subscriptions = useTeamRead(
    ['event-subscriptions'],
    async (client) => (await client.listEventSubscriptions()).subscriptions,
  );
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
                <DataTable
                  aria-label="Event subscriptions"
                  items={list}
                  keyOf={({ id }) => id}
                  columns={(column) => [
                    column('Subscription', {}, SubscriptionLink),
                    column('Events', { width: 280, tone: 'muted' }, ({ events }) => events.join(', ')),
                    column('State', { width: 200 }, (each) => <SubscriptionState subscription={each} />),
                  ]}
                />
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

const SubscriptionLink = ({ id, name, url }: EventSubscription) => (
  <>
    <Link
      to="/settings/$tab"
      params={{ tab: 'events' }}
      search={{ subscription: id }}
      className={look({ medium: true })}
    >
      {visibleText(name ?? url)}
    </Link>
    {name !== undefined && <Text tone="dim"> {visibleText(url)}</Text>}
  </>
);

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
