/** The addresses of the dashboard. Each screen is loaded when it is first opened. */

import type { QueryClient } from '@tanstack/react-query';
import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  lazyRouteComponent,
  notFound,
  Outlet,
  redirect,
  retainSearchParams,
} from '@tanstack/react-router';
import { signInFragment } from '../api/own-sign-in.ts';
import { statusOf } from '../api/problem.ts';
import { isSignedOut, teamParameter } from '../api/session.ts';
import { NotFound } from '../frame/not-found.tsx';
import { oneOf, parseSearch, type Search, writeSearch } from '../frame/search.ts';
import { Pad } from '../parts/blocks.tsx';
import { Problem } from '../parts/problem.tsx';
import { SignedIn, sessionQuery } from './signed-in.tsx';

/** Keeps all members of the query, because each screen itself selects the members that it needs. */
const anySearch = (search: Search): Search => search;

const root = createRootRouteWithContext<{ queries: QueryClient }>()({
  component: Outlet,
  notFoundComponent: () => <NotFound />,
  validateSearch: anySearch,
  search: { middlewares: [retainSearchParams(['team'])] },
});

const signIn = createRoute({
  getParentRoute: () => root,
  path: '/sign-in',
  component: lazyRouteComponent(() => import('../screens/sign-in/sign-in-screen.tsx'), 'SignInScreen'),
});

const shell = createRoute({
  getParentRoute: () => root,
  id: 'shell',
  component: SignedIn,
  // Give the sign-in page the current address, so that the browser returns to it after the sign-in.
  beforeLoad: async ({ context: { queries }, location, search }) => {
    const team = oneOf(search[teamParameter]);
    try {
      await queries.ensureQueryData(sessionQuery(team));
    } catch (error) {
      // The person is not in the team of the address. Do not show whether this team exists.
      if (team !== undefined && statusOf(error) === 403) throw notFound();
      if (!isSignedOut(error)) throw error;
      // The sign-in page itself takes the code of a one-time link from the fragment.
      const hash = location.hash === '' || location.hash.startsWith(signInFragment) ? '' : `#${location.hash}`;
      const next = location.pathname + location.searchStr + hash;
      throw redirect({ to: '/sign-in', search: { next }, hash: location.hash, replace: true });
    }
  },
});

const home = createRoute({
  getParentRoute: () => shell,
  path: '/',
  beforeLoad: () => {
    throw redirect({ to: '/runs' });
  },
});
const runs = createRoute({
  getParentRoute: () => shell,
  path: '/runs',
  component: lazyRouteComponent(() => import('../screens/runs/runs-screen.tsx'), 'RunsScreen'),
});
const newRun = createRoute({
  getParentRoute: () => shell,
  path: '/runs/new',
  component: lazyRouteComponent(() => import('../screens/new-run/new-run-screen.tsx'), 'NewRunScreen'),
});
const run = createRoute({
  getParentRoute: () => shell,
  path: '/runs/$runId',
  component: lazyRouteComponent(() => import('../screens/run/run-screen.tsx'), 'RunScreen'),
});
const compare = createRoute({
  getParentRoute: () => shell,
  path: '/compare',
  component: lazyRouteComponent(() => import('../screens/compare/compare-screen.tsx'), 'CompareScreen'),
});
const inbox = createRoute({
  getParentRoute: () => shell,
  path: '/inbox',
  component: lazyRouteComponent(() => import('../screens/inbox/inbox-screen.tsx'), 'InboxScreen'),
});
/** Earlier address of the inbox. */
const needsAnswer = createRoute({
  getParentRoute: () => shell,
  path: '/needs-answer',
  beforeLoad: ({ search }) => {
    throw redirect({ to: '/inbox', search, replace: true });
  },
});
const schedules = createRoute({
  getParentRoute: () => shell,
  path: '/schedules',
  component: lazyRouteComponent(() => import('../screens/schedules/schedules-screen.tsx'), 'SchedulesScreen'),
});
const schedule = createRoute({
  getParentRoute: () => shell,
  path: '/schedules/$scheduleId',
  component: lazyRouteComponent(() => import('../screens/schedules/schedule-screen.tsx'), 'ScheduleScreen'),
});
const factories = createRoute({
  getParentRoute: () => shell,
  path: '/factories',
  component: lazyRouteComponent(() => import('../screens/factories/factories-screen.tsx'), 'FactoriesScreen'),
});
const factory = createRoute({
  getParentRoute: () => shell,
  path: '/factories/$factoryUid',
  component: lazyRouteComponent(() => import('../screens/factories/factory-screen.tsx'), 'FactoryScreen'),
});
const automation = createRoute({
  getParentRoute: () => shell,
  path: '/factories/$factoryUid/automations/$automationUid',
  component: lazyRouteComponent(() => import('../screens/automations/automation-screen.tsx'), 'AutomationScreen'),
});
const webhook = createRoute({
  getParentRoute: () => shell,
  path: '/factories/$factoryUid/webhooks/$webhookUid',
  component: lazyRouteComponent(() => import('../screens/webhooks/webhook-screen.tsx'), 'WebhookScreen'),
});
const delivery = createRoute({
  getParentRoute: () => shell,
  path: '/factories/$factoryUid/webhooks/$webhookUid/deliveries/$deliveryId',
  component: lazyRouteComponent(() => import('../screens/webhooks/webhook-screen.tsx'), 'WebhookScreen'),
});
const environments = createRoute({
  getParentRoute: () => shell,
  path: '/environments',
  component: lazyRouteComponent(() => import('../screens/environments/environments-screen.tsx'), 'EnvironmentsScreen'),
});
const environment = createRoute({
  getParentRoute: () => shell,
  path: '/environments/$uid',
  component: lazyRouteComponent(() => import('../screens/environments/environment-screen.tsx'), 'EnvironmentScreen'),
});
const agents = createRoute({
  getParentRoute: () => shell,
  path: '/agents',
  component: lazyRouteComponent(() => import('../screens/agents/agents-screen.tsx'), 'AgentsScreen'),
});
const workers = createRoute({
  getParentRoute: () => shell,
  path: '/workers',
  component: lazyRouteComponent(() => import('../screens/workers/workers-screen.tsx'), 'WorkersScreen'),
});
const usage = createRoute({
  getParentRoute: () => shell,
  path: '/usage',
  component: lazyRouteComponent(() => import('../screens/usage/usage-screen.tsx'), 'UsageScreen'),
});
const settings = createRoute({
  getParentRoute: () => shell,
  path: '/settings',
  beforeLoad: () => {
    throw redirect({ to: '/settings/$tab', params: { tab: 'members' } });
  },
});
const settingsTab = createRoute({
  getParentRoute: () => shell,
  path: '/settings/$tab',
  component: lazyRouteComponent(() => import('../screens/settings/settings-screen.tsx'), 'SettingsScreen'),
});
const commandLine = createRoute({
  getParentRoute: () => shell,
  path: '/command-line',
  component: lazyRouteComponent(() => import('../screens/command-line/command-line-screen.tsx'), 'CommandLineScreen'),
});

const tree = root.addChildren([
  signIn,
  shell.addChildren([
    home,
    runs,
    newRun,
    run,
    compare,
    inbox,
    needsAnswer,
    schedules,
    schedule,
    factories,
    factory,
    automation,
    webhook,
    delivery,
    environments,
    environment,
    agents,
    workers,
    usage,
    settings,
    settingsTab,
    commandLine,
  ]),
]);

/** Makes the router of the dashboard. */
export const makeRouter = (queries: QueryClient) =>
  createRouter({
    routeTree: tree,
    context: { queries },
    parseSearch,
    stringifySearch: writeSearch,
    defaultPreload: 'intent',
    scrollRestoration: true,
    defaultErrorComponent: ({ error }) => (
      <Pad>
        <Problem error={error} />
      </Pad>
    ),
  });
