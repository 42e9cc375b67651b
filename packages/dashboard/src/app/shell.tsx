import type { NotificationKind } from '@runyard/contract/inbox/notifications';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, type LinkProps, useNavigate } from '@tanstack/react-router';
import { lazy, type ReactNode, Suspense, useRef, useState, useSyncExternalStore } from 'react';
import { useFactoryProblems } from '../api/lists.ts';
import { useTeamRead } from '../api/read.ts';
import { useClient, useMay, useSession } from '../api/session.ts';
import { useTeamEvents } from '../api/stream.ts';
import { DrawerContext } from '../frame/menu-button.tsx';
import { switchTheme } from '../frame/theme.ts';
import { Count, Nav, Text } from '../parts/blocks.tsx';
import { Button } from '../parts/controls.tsx';
import { EarlyWords } from '../parts/early-words.tsx';
import { Icon } from '../parts/icon.tsx';
import type { IconName } from '../parts/icons.ts';
import { keyText, useKeys } from '../parts/keys.ts';
import layout from '../parts/layout.module.css';
import { useSoon } from '../parts/soon.ts';
import styles from './app.module.css';
import { PersonMenu, TeamMenu } from './team-menu.tsx';

const Palette = lazy(async () => ({ default: (await import('../screens/palette/palette.tsx')).Palette }));
const KeyMap = lazy(async () => ({ default: (await import('./key-map.tsx')).KeyMap }));
const Notifications = lazy(async () => ({ default: (await import('./notifications.ts')).Notifications }));

/** The address of a screen that needs no id. */
type Target = Exclude<LinkProps['to'], undefined>;

/** The frame of all screens: navigation at the left, the screen at the right. */
export function Shell({ children }: { children: ReactNode }) {
  const navigate = useNavigate();
  const [open, setOpen] = useState<'palette' | 'keys' | 'drawer' | undefined>();
  const close = () => setOpen(undefined);
  const words = useRef('');
  const maySeeUsage = useMay('member');
  const goTo = (to: Target) => () => void navigate({ to });
  const keys = [
    { key: 'mod+k', does: 'Search or jump to', run: () => setOpen('palette') },
    { key: '?', does: 'Show all keys', run: () => setOpen('keys') },
    { key: 'c', does: 'New run', run: goTo('/runs/new') },
    { key: 'g r', does: 'Go to runs', run: goTo('/runs') },
    { key: 'g a', does: 'Go to the inbox', run: goTo('/inbox') },
    { key: 'g s', does: 'Go to schedules', run: goTo('/schedules') },
    { key: 'g f', does: 'Go to factories', run: goTo('/factories') },
    ...(maySeeUsage ? [{ key: 'g u', does: 'Go to usage', run: goTo('/usage') }] : []),
  ];
  useKeys(keys, { ofAllScreens: true });
  return (
    <>
      <a className={styles.skip} href="#main">
        Skip to content
      </a>
      <div className={`${styles.frame} ${open === 'drawer' ? styles.drawerOpen : ''}`}>
        <Sidebar openPalette={() => setOpen('palette')} onNavigate={close} />
        {open === 'drawer' && (
          <button type="button" className={styles.drawerScrim} aria-label="Close menu" onClick={close} />
        )}
        <div className={styles.page}>
          <DrawerContext value={() => setOpen(open === 'drawer' ? undefined : 'drawer')}>{children}</DrawerContext>
        </div>
      </div>
      <Suspense fallback={<EarlyWords words={words} />}>
        {open === 'palette' && <Palette close={close} words={words} />}
      </Suspense>
      <Suspense>{open === 'keys' && <KeyMap close={close} />}</Suspense>
      <Suspense>{useIsHidden() && mayNotify() && <Notifications />}</Suspense>
    </>
  );
}

const onVisibility = (listener: () => void): (() => void) => {
  document.addEventListener('visibilitychange', listener);
  return () => document.removeEventListener('visibilitychange', listener);
};

/** Returns true while the page is in the background. */
const useIsHidden = (): boolean => useSyncExternalStore(onVisibility, () => document.hidden);

const mayNotify = (): boolean => typeof Notification !== 'undefined' && Notification.permission === 'granted';

function Sidebar({ openPalette, onNavigate }: { openPalette: () => void; onNavigate: () => void }) {
  const unread = useUnread();
  const problems = useFactoryProblems();
  const factories = useTeamRead(
    ['factories'],
    async (client) => (await client.listFactories({ query: { limit: 100 } })).factories,
    { staleTime: 30_000 },
  );
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: a click on a link of the drawer also closes the drawer
    <nav
      className={styles.side}
      aria-label="Main"
      onClick={(event) => (event.target as Element).closest('a') && onNavigate()}
    >
      <TeamMenu />
      <button className={styles.jump} type="button" onClick={openPalette}>
        <Icon name="search" small />
        <Text grow>Search</Text>
        <kbd>{keyText('mod+k')}</kbd>
      </button>
      <Nav>
        <Entry to="/runs" icon="runs" label="Runs" />
        <Entry to="/inbox" icon="ask" label="Inbox" count={unread} asks />
        <Entry to="/schedules" icon="clock" label="Schedules" />
      </Nav>
      <div className={styles.navHead}>Factories</div>
      <Nav>
        {(factories.data ?? []).slice(0, 6).map(({ uid, name }) => (
          <Link key={uid} to="/factories/$factoryUid" params={{ factoryUid: uid }} activeProps={current}>
            <Icon name="factory" />
            <Text cut>{visibleText(name)}</Text>
            <Problems count={problems.get(uid)} />
          </Link>
        ))}
        <Entry to="/factories" icon="more" label="All factories" exact />
      </Nav>
      <div className={styles.navHead}>Resources</div>
      <Nav>
        <Entry to="/environments" icon="env" label="Environments" />
        <Entry to="/agents" icon="agent" label="Agents and skills" />
        <Entry to="/workers" icon="worker" label="Workers" />
        {useMay('member') && <Entry to="/usage" icon="usage" label="Usage" />}
        <Entry to="/settings" icon="gear" label="Settings" />
      </Nav>
      <div className={`${styles.sideEnd} ${layout.nav}`}>
        <a href="/docs">
          <Icon name="book" />
          <span>API reference</span>
        </a>
        <div className={styles.me}>
          <PersonMenu />
          <Button
            kind="ghost"
            small
            icon="moon"
            aria-label="Switch between light and dark"
            title="Light or dark"
            onClick={switchTheme}
          />
        </div>
      </div>
    </nav>
  );
}

/** Shows the number of automations of a factory that cannot fire. */
const Problems = ({ count }: { count: number | undefined }) =>
  count !== undefined && (
    <Count asks right title="Automations that cannot fire">
      {count}
      <Text spoken> cannot fire</Text>
    </Count>
  );

/** All events that arrive within this number of milliseconds cause only one count of the runs. */
const countMs = 1_000;

/** All kinds except revisions to accept. */
const workKinds: NotificationKind[] = [
  'question',
  'answer_question',
  'blocked',
  'spec_review',
  'pr_review',
  'failed',
  'failed_times',
  'missed',
  'budget',
];

/** Returns the number of notifications that the person has not read. */
function useUnread(): number {
  const { team } = useSession();
  const client = useClient();
  const queries = useQueryClient();
  const countOf = (kind: NotificationKind[]) => ({
    queryKey: ['inbox', team.uid, 'count', kind[0]],
    queryFn: async () => (await client.countNotifications({ query: { kind } })).unread,
  });
  const work = useQuery(countOf(workKinds));
  // The events of runs change no revisions, whose count takes longer.
  const revisions = useQuery({ ...countOf(['acceptance']), enabled: useMay('member') });
  const readSoon = useSoon(() => {
    void queries.invalidateQueries({ queryKey: ['counts', team.uid] });
    void queries.invalidateQueries({ queryKey: countOf(['question']).queryKey });
  }, countMs);
  useTeamEvents(({ type }) => type === 'state' && readSoon(), readSoon);
  return (work.data ?? 0) + (revisions.data ?? 0);
}

const current = { 'aria-current': 'page' } as const;

function Entry({
  to,
  icon,
  label,
  count,
  asks = false,
  exact = false,
}: {
  to: Target;
  icon: IconName;
  label: string;
  count?: number;
  /** True: the number counts what needs a person. */
  asks?: boolean;
  exact?: boolean;
}) {
  return (
    <Link to={to} activeProps={current} activeOptions={{ exact, includeSearch: false }}>
      <Icon name={icon} />
      <Text cut>{label}</Text>
      {count !== undefined && count > 0 && (
        <Count right asks={asks}>
          {count}
        </Count>
      )}
    </Link>
  );
}
