import { getRouteApi } from '@tanstack/react-router';
import { lazy, Suspense } from 'react';
import { useMay } from '../../api/session.ts';
import { useTeamStreamStatus } from '../../api/stream.ts';
import { Page } from '../../frame/page.tsx';
import { oneOf } from '../../frame/search.ts';
import { Live } from '../../parts/live.tsx';
import { QueryTabs } from '../../parts/query-tabs.tsx';
import { AskForNotifications } from './ask-for-notifications.tsx';
import { NotificationList } from './notification-list.tsx';

const Revisions = lazy(async () => ({ default: (await import('./revisions.tsx')).Revisions }));
const route = getRouteApi('/shell/inbox');

/** The tabs: notifications of the person, notifications of everybody in the team, and revisions to accept. */
const tabs = { mine: 'For you', team: 'For the team', acceptances: 'Revisions to accept' } as const;
type Tab = keyof typeof tabs;

/** The inbox: notifications of the person or of other members of the team. */
export function InboxScreen() {
  const named = oneOf(route.useSearch({ select: ({ tab: name }) => name }));
  const mayAccept = useMay('member');
  const shown = (Object.keys(tabs) as Tab[]).filter((tab) => tab !== 'acceptances' || mayAccept);
  const tab = shown.find((each) => each === named) ?? 'mine';
  return (
    <Page
      title="Inbox"
      status={<Live status={useTeamStreamStatus()} />}
      actions={<AskForNotifications />}
      tabs={
        <QueryTabs
          label="For whom"
          tabs={shown.map((each) => ({
            name: tabs[each],
            search: each === 'mine' ? {} : { tab: each },
            isCurrent: each === tab,
          }))}
        />
      }
    >
      {tab === 'acceptances' ? (
        <Suspense>
          <Revisions />
        </Suspense>
      ) : (
        <NotificationList scope={tab} />
      )}
    </Page>
  );
}
