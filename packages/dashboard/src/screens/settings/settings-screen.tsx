import type { Role } from '@runyard/contract/wire/access';
import { visibleText } from '@runyard/contract/wire/visible';
import { getRouteApi, Link } from '@tanstack/react-router';
import { type ComponentType, lazy, Suspense } from 'react';
import { useMay, useSession } from '../../api/session.ts';
import { NotFound } from '../../frame/not-found.tsx';
import { Page } from '../../frame/page.tsx';
import { SkeletonRows } from '../../parts/empty.tsx';
import { Icon } from '../../parts/icon.tsx';
import styles from './settings.module.css';
import { type SettingsTab, settingsTabs } from './tabs.ts';

/** Contents of the tabs. Each tab is loaded when it is first opened. */
const views: Readonly<Record<(typeof settingsTabs)[number]['name'], ComponentType>> = {
  members: lazy(async () => ({ default: (await import('./members.tsx')).Members })),
  keys: lazy(async () => ({ default: (await import('./keys.tsx')).Keys })),
  secrets: lazy(async () => ({ default: (await import('./secrets.tsx')).Secrets })),
  models: lazy(async () => ({ default: (await import('./models.tsx')).Models })),
  budget: lazy(async () => ({ default: (await import('./budget.tsx')).Budget })),
  'code-hosts': lazy(async () => ({ default: (await import('./code-hosts.tsx')).CodeHosts })),
  mcp: lazy(async () => ({ default: (await import('./mcp-servers.tsx')).McpServers })),
  events: lazy(async () => ({ default: (await import('./event-subscriptions.tsx')).EventSubscriptions })),
  installation: lazy(async () => ({ default: (await import('./installation.tsx')).Installation })),
  audit: lazy(async () => ({ default: (await import('./audit-log.tsx')).AuditLog })),
};

const route = getRouteApi('/shell/settings/$tab');

/** Shows one tab of the team's settings. Hides tabs that the role of the person may not read. */
export function SettingsScreen() {
  const { team } = useSession();
  const { tab: name } = route.useParams();
  const tab = settingsTabs.find((each) => each.name === name);
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
          {settingsTabs.map((each) => (
            <TabLink key={each.name} tab={each} />
          ))}
        </nav>
        <div className={`wide ${styles.tab}`}>
          {tab === undefined ? <NotFound what="tab" /> : <TabView key={tab.name} tab={tab} View={views[tab.name]} />}
        </div>
      </div>
    </Page>
  );
}

const article = (role: Role): string => (/^[aeiou]/.test(role) ? 'an' : 'a');

function TabLink({ tab }: { tab: SettingsTab }) {
  const may = useMay(tab.needs);
  const { readsInstallation } = useSession();
  if (!may || (tab.ofInstallation && !readsInstallation)) return null;
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

function TabView({ tab: { label, needs }, View }: { tab: SettingsTab; View: ComponentType }) {
  const may = useMay(needs);
  const { team } = useSession();
  if (!may)
    return (
      <section>
        <h2>{label}</h2>
        <p className="mut">{`You need at least the role ${needs} to read this. You are ${article(team.role)} ${team.role}: ask an administrator.`}</p>
      </section>
    );
  return (
    <Suspense fallback={<SkeletonRows count={4} />}>
      <View />
    </Suspense>
  );
}
