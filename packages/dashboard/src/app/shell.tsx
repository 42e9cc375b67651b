import { visibleText } from '@runyard/contract/wire/visible';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, type LinkProps, useNavigate } from '@tanstack/react-router';
import { lazy, type ReactNode, Suspense, useState, useSyncExternalStore } from 'react';
import { useFactoryProblems, useRunCount } from '../api/lists.ts';
import { useClient, useMay, useSession } from '../api/session.ts';
import { useTeamEvents } from '../api/stream.ts';
import { DrawerContext } from '../frame/menu-button.tsx';
import { switchTheme } from '../frame/theme.ts';
import { Icon, type IconName } from '../parts/icon.tsx';
import { keyText, useKeys } from '../parts/keys.ts';
import { useSoon } from '../parts/soon.ts';
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
  const maySeeUsage = useMay('member');
  const goTo = (to: Target) => () => void navigate({ to });
  useKeys([
    { key: 'mod+k', does: 'Search or jump to', run: () => setOpen('palette') },
    { key: '?', does: 'Show all keys', run: () => setOpen('keys') },
    { key: 'c', does: 'New run', run: goTo('/runs/new') },
    { key: 'g r', does: 'Go to runs', run: goTo('/runs') },
    { key: 'g a', does: 'Go to what needs an answer', run: goTo('/needs-answer') },
    { key: 'g s', does: 'Go to schedules', run: goTo('/schedules') },
    { key: 'g f', does: 'Go to factories', run: goTo('/factories') },
    ...(maySeeUsage ? [{ key: 'g u', does: 'Go to usage', run: goTo('/usage') }] : []),
  ]);
  return (
    <>
      <a className="skip" href="#main">
        Skip to content
      </a>
      <div className={`app ${open === 'drawer' ? 'drawer-open' : ''}`}>
        <Sidebar openPalette={() => setOpen('palette')} onNavigate={close} />
        {open === 'drawer' && <button type="button" className="drawer-scrim" aria-label="Close menu" onClick={close} />}
        <div className="page">
          <DrawerContext value={() => setOpen(open === 'drawer' ? undefined : 'drawer')}>{children}</DrawerContext>
        </div>
      </div>
      <Suspense>
        {open === 'palette' && <Palette close={close} />}
        {open === 'keys' && <KeyMap close={close} />}
      </Suspense>
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
  const { team } = useSession();
  const client = useClient();
  const waiting = useWaiting();
  const problems = useFactoryProblems();
  const factories = useQuery({
    queryKey: ['factories', team.uid],
    queryFn: async () => (await client.listFactories({ query: { limit: 100 } })).factories,
    staleTime: 30_000,
  });
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: a click on a link of the drawer also closes the drawer
    <nav className="side" aria-label="Main" onClick={(event) => (event.target as Element).closest('a') && onNavigate()}>
      <TeamMenu />
      <button className="jump" type="button" onClick={openPalette}>
        <Icon name="search" small />
        <span className="grow">Search</span>
        <kbd>{keyText('mod+k')}</kbd>
      </button>
      <div className="nav">
        <Entry to="/runs" icon="runs" label="Runs" />
        <Entry to="/needs-answer" icon="ask" label="Needs answer" count={waiting} asks />
        <Entry to="/schedules" icon="clock" label="Schedules" />
      </div>
      <div className="nav-h">Factories</div>
      <div className="nav">
        {(factories.data ?? []).slice(0, 6).map(({ uid, name }) => (
          <Link key={uid} to="/factories/$factoryUid" params={{ factoryUid: uid }} activeProps={current}>
            <Icon name="factory" />
            <span className="cut">{visibleText(name)}</span>
            <Problems count={problems.get(uid)} />
          </Link>
        ))}
        <Entry to="/factories" icon="more" label="All factories" exact />
      </div>
      <div className="nav-h">Resources</div>
      <div className="nav">
        <Entry to="/environments" icon="env" label="Environments" />
        <Entry to="/agents" icon="agent" label="Agents and skills" />
        <Entry to="/workers" icon="worker" label="Workers" />
        {useMay('member') && <Entry to="/usage" icon="usage" label="Usage" />}
        <Entry to="/settings" icon="gear" label="Settings" />
      </div>
      <div className="side-end nav">
        <a href="/docs">
          <Icon name="book" />
          <span>API reference</span>
        </a>
        <div className="me">
          <PersonMenu />
          <button
            type="button"
            className="btn ghost sm icon"
            aria-label="Switch between light and dark"
            title="Light or dark"
            onClick={switchTheme}
          >
            <Icon name="moon" small />
          </button>
        </div>
      </div>
    </nav>
  );
}

/** Shows the number of automations of a factory that cannot fire. */
const Problems = ({ count }: { count: number | undefined }) =>
  count !== undefined && (
    <span className="n ask" title="Automations that cannot fire">
      {count}
      <span className="sr"> cannot fire</span>
    </span>
  );

/** All events that arrive within this number of milliseconds cause only one count of the runs. */
const countMs = 1_000;

/** Returns the number of runs that wait for an answer and of revisions that wait for the person's acceptance. */
function useWaiting(): number {
  const { team } = useSession();
  const client = useClient();
  const runs = useRunCount({ state: ['BLOCKED'] });
  const queries = useQueryClient();
  const readSoon = useSoon(() => void queries.invalidateQueries({ queryKey: ['counts', team.uid] }), countMs);
  useTeamEvents(({ type }) => type === 'state' && readSoon(), readSoon);
  const acceptances = useQuery({
    queryKey: ['waiting', team.uid],
    queryFn: async () => await client.countAcceptances({}),
    enabled: useMay('member'),
  });
  return (runs.data?.total ?? 0) + (acceptances.data?.waiting ?? 0);
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
  /** True: the number counts runs or revisions that need a person. */
  asks?: boolean;
  exact?: boolean;
}) {
  return (
    <Link to={to} activeProps={current} activeOptions={{ exact, includeSearch: false }}>
      <Icon name={icon} />
      <span className="cut">{label}</span>
      {count !== undefined && count > 0 && <span className={`n ${asks ? 'ask' : ''}`}>{count}</span>}
    </Link>
  );
}
