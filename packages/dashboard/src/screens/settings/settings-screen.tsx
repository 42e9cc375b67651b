import type { Role } from '@runyard/contract/wire/access';
import { visibleText } from '@runyard/contract/wire/visible';
import { getRouteApi, Link } from '@tanstack/react-router';
import { type ComponentType, lazy, Suspense } from 'react';
import { useMay, useSession } from '../../api/session.ts';
import { NotFound } from '../../frame/not-found.tsx';
import { Page } from '../../frame/page.tsx';
import { Content, Nav, P, Row, Text } from '../../parts/blocks.tsx';
import { SkeletonRows } from '../../parts/empty.tsx';
import { Icon } from '../../parts/icon.tsx';
import styles from './settings.module.css';
import { type SettingsTab, settingsTabs } from './tabs.ts';

/** Contents of the tabs. Each tab is loaded when it is first opened. */
const views: Readonly<Record<(typeof settingsTabs)[number]['name'], ComponentType>> = {
  members: lazy(async () => ({ default: (await import('./members.tsx')).Members })),
  keys: lazy(async () => ({ default: (await import('./keys.tsx')).KeysTab })),
  secrets: lazy(async () => ({ default: (await import('./secrets.tsx')).Secrets })),
  models: lazy(async () => ({ default: (await import('./models.tsx')).Models })),
  budget: lazy(async () => ({ default: (await import('./budget.tsx')).Budget })),
  'code-hosts': lazy(async () => ({ default: (await import('./code-hosts.tsx')).CodeHosts })),
  github: lazy(async () => ({ default: (await import('./github.tsx')).Github })),
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
        <Row as="span" tone="dim" notNarrow>
          <Text right>{`${visibleText(team.name)}, you are ${article(team.role)} ${team.role}`}</Text>
        </Row>
      }
    >
      <div className={styles.screen}>
        <Nav as="nav" aria-label="Settings">
          {settingsTabs.map((each) => (
            <TabLink key={each.name} tab={each} />
          ))}
        </Nav>
        <Content className={styles.tab}>
          {tab === undefined ? <NotFound what="tab" /> : <TabView key={tab.name} tab={tab} View={views[tab.name]} />}
        </Content>
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
      <Text cut>{tab.label}</Text>
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
        <P tone="muted">{`You need at least the role ${needs} to read this. You are ${article(team.role)} ${team.role}: ask an administrator.`}</P>
      </section>
    );
  return (
    <Suspense fallback={<SkeletonRows count={4} />}>
      <View />
    </Suspense>
  );
}
