import type { EventSubscription } from '@runyard/contract/team/event-subscriptions';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useState } from 'react';
import { useClient, useSession } from '../../api/session.ts';
import { oneOf } from '../../frame/search.ts';
import { SecretOnceDialog } from '../../parts/dialog.tsx';
import { Empty } from '../../parts/empty.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Loaded } from '../../parts/loaded.tsx';
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
    <button type="button" className="btn pri" onClick={() => setCreating(true)}>
      <Icon name="plus" small />
      New subscription
    </button>
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
          <p className="mut">The receiver checks the header webhook-signature with it, as Standard Webhooks says.</p>
        </SecretOnceDialog>
      )}
    </>
  );
}

function SubscriptionTable({ list }: { list: readonly EventSubscription[] }) {
  return (
    <div className="card">
      <table className="tbl in-card" aria-label="Event subscriptions">
        <thead>
          <tr>
            <th>Subscription</th>
            <th className="w280">Events</th>
            <th className="w200">State</th>
          </tr>
        </thead>
        <tbody>
          {list.map((subscription) => (
            <tr key={subscription.id}>
              <td>
                <Link
                  to="/settings/$tab"
                  params={{ tab: 'events' }}
                  search={{ subscription: subscription.id }}
                  className="md"
                >
                  {visibleText(subscription.name ?? subscription.url)}
                </Link>
                {subscription.name !== undefined && <span className="dim"> {visibleText(subscription.url)}</span>}
              </td>
              <td className="mut">{subscription.events.join(', ')}</td>
              <td>
                <SubscriptionState subscription={subscription} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Shows whether a subscription is active, and whether its deliveries succeed. */
export function SubscriptionState({ subscription }: { subscription: EventSubscription }) {
  if (!subscription.enabled)
    return (
      <span className="dim">{subscription.disabled_reason === undefined ? 'disabled' : 'disabled by the service'}</span>
    );
  if (subscription.failing_since !== undefined)
    return (
      <span className="badc">
        failing for <Ago time={subscription.failing_since} />
      </span>
    );
  return <span className="mut">enabled</span>;
}
