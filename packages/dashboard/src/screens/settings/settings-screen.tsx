import type { Role } from '@runyard/contract/wire/access';
import { visibleText } from '@runyard/contract/wire/visible';
import { getRouteApi, Link } from '@tanstack/react-router';
import { type ComponentType, lazy, Suspense } from 'react';
import { useMay, useSession } from '../../api/session.ts';
import { NotFound } from '../../frame/not-found.tsx';
import { Page } from '../../frame/page.tsx';
import { SkeletonRows } from '../../parts/empty.tsx';
import { Icon, type IconName } from '../../parts/icon.tsx';
import styles from './settings.module.css';

interface Tab {
  readonly name: string;
  readonly label: string;
  readonly icon: IconName;
  /** The lowest role that may read the content of the tab. */
  readonly needs: Role;
  readonly View: ComponentType;
}

const tabs: readonly Tab[] = [
  {
    name: 'members',
    label: 'Members',
    icon: 'people',
    needs: 'viewer',
    View: lazy(async () => ({ default: (await import('./members.tsx')).Members })),
  },
  {
    name: 'keys',
    label: 'Keys',
    icon: 'key',
    needs: 'viewer',
    View: lazy(async () => ({ default: (await import('./keys.tsx')).Keys })),
  },
  {
    name: 'secrets',
    label: 'Secrets',
    icon: 'lock',
    needs: 'viewer',
    View: lazy(async () => ({ default: (await import('./secrets.tsx')).Secrets })),
  },
  {
    name: 'models',
    label: 'Models',
    icon: 'bolt',
    needs: 'viewer',
    View: lazy(async () => ({ default: (await import('./models.tsx')).Models })),
  },
  {
    name: 'budget',
    label: 'Budget',
    icon: 'usage',
    needs: 'admin',
    View: lazy(async () => ({ default: (await import('./budget.tsx')).Budget })),
  },
  {
    name: 'code-hosts',
    label: 'Code hosts',
    icon: 'git',
    needs: 'member',
    View: lazy(async () => ({ default: (await import('./code-hosts.tsx')).CodeHosts })),
  },
  {
    name: 'mcp',
    label: 'MCP servers',
    icon: 'link',
    needs: 'viewer',
    View: lazy(async () => ({ default: (await import('./mcp-servers.tsx')).McpServers })),
  },
  {
    name: 'events',
    label: 'Event subscriptions',
    icon: 'bell',
    needs: 'admin',
    View: lazy(async () => ({ default: (await import('./event-subscriptions.tsx')).EventSubscriptions })),
  },
  {
    name: 'audit',
    label: 'Audit log',
    icon: 'book',
    needs: 'admin',
    View: lazy(async () => ({ default: (await import('./audit-log.tsx')).AuditLog })),
  },
];

const route = getRouteApi('/shell/settings/$tab');

/** Shows one tab of the settings of the team. Tabs that the role may not read are absent. */
export function SettingsScreen() {
  const { team } = useSession();
  const { tab: name } = route.useParams();
  const tab = tabs.find((each) => each.name === name);
  return (
    <Page
      title="Settings"
      status={
        <span className="dim hide-m row">
          <span className="right">{`${visibleText(team.name)}, you are ${article(team.role)} ${team.role}`}</span>
        </span>
      }
    >
      <div className="setnav">
        <nav className="nav" aria-label="Settings">
          {tabs.map((each) => (
            <TabLink key={each.name} tab={each} />
          ))}
        </nav>
        <div className={`wide ${styles.tab}`}>
          {tab === undefined ? <NotFound what="tab" /> : <TabView key={tab.name} tab={tab} />}
        </div>
      </div>
    </Page>
  );
}

const article = (role: Role): string => (/^[aeiou]/.test(role) ? 'an' : 'a');

function TabLink({ tab }: { tab: Tab }) {
  const may = useMay(tab.needs);
  if (!may) return null;
  return (
    <Link
      to="/settings/$tab"
      params={{ tab: tab.name }}
      activeProps={{ 'aria-current': 'page' }}
      activeOptions={{ includeSearch: false }}
    >
      <Icon name={tab.icon} />
      <span className="cut">{tab.label}</span>
    </Link>
  );
}

function TabView({ tab: { label, needs, View } }: { tab: Tab }) {
  const may = useMay(needs);
  const { team } = useSession();
  if (!may)
    return (
      <section>
        <h2>{label}</h2>
        <p className="mut">{`Only people from the role ${needs} on read this. You are ${article(team.role)} ${team.role}: ask an administrator.`}</p>
      </section>
    );
  return (
    <Suspense fallback={<SkeletonRows count={4} />}>
      <View />
    </Suspense>
  );
}
