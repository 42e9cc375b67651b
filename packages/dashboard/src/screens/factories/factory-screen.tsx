import type { Factory } from '@runyard/contract/factories/factories';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQueryClient } from '@tanstack/react-query';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { lazy, Suspense, useState } from 'react';
import { useRead } from '../../api/read.ts';
import { useClient, useMay, useSession } from '../../api/session.ts';
import { Crumb } from '../../frame/crumb.tsx';
import { DetailPage } from '../../frame/detail-page.tsx';
import { Page } from '../../frame/page.tsx';
import { oneOf } from '../../frame/search.ts';
import { Content, Count, Note, Stack } from '../../parts/blocks.tsx';
import { countText } from '../../parts/format.ts';
import { Icon } from '../../parts/icon.tsx';
import { useKeys } from '../../parts/keys.ts';
import { MoreMenu } from '../../parts/more-menu.tsx';
import { Problem } from '../../parts/problem.tsx';
import { QueryTabs } from '../../parts/query-tabs.tsx';
import { AskButton } from '../../parts/question.tsx';
import { RoleButton, RoleLink } from '../../parts/role-button.tsx';
import { useSchedules } from '../schedules/use-schedules.ts';
import { Definition, useFactoryDefinition } from './definition.tsx';
import { FactoryMap } from './factory-map.tsx';
import { mapParts, scheduleIdsOf } from './map-parts.ts';
import { Source, useFactorySource } from './source.tsx';
import { AutomationTable, useTeamThings, WebhookTable } from './team-tables.tsx';

const NewWebhook = lazy(async () => ({ default: (await import('../webhooks/new-webhook.tsx')).NewWebhook }));

const route = getRouteApi('/shell/factories/$factoryUid');

const crumbs = <Crumb to="/factories">Factories</Crumb>;

/**
 * Shows one factory. The screen shows its automations, marks automations that cannot fire, and shows whether the factory matches its
 * repository.
 */
export function FactoryScreen() {
  const { factoryUid } = route.useParams();
  const factory = useRead(['factory', factoryUid], (client) => client.getFactory({ params: { factoryUid } }));
  return (
    <DetailPage what="factory" crumbs={crumbs} query={factory}>
      {({ name, agents }) => <FactoryPage key={factoryUid} factoryUid={factoryUid} name={name} agents={agents} />}
    </DetailPage>
  );
}

interface FactoryProps {
  readonly factoryUid: string;
  readonly name: string;
}

function FactoryPage({ factoryUid, name, agents }: FactoryProps & Pick<Factory, 'agents'>) {
  const tab = oneOf(route.useSearch({ select: (search) => search.tab })) ?? 'map';
  const [isAdding, setAdding] = useState(false);
  const navigate = useNavigate();
  const may = useMay('member');
  const newAutomation = {
    to: '/factories/$factoryUid/automations/$automationUid',
    params: { factoryUid, automationUid: 'new' },
  } as const;
  useKeys([{ key: 'c', does: 'New automation', run: () => may && void navigate(newAutomation) }]);
  return (
    <Page
      title={name}
      crumbs={crumbs}
      actions={
        <>
          <RoleButton needs="member" run={() => setAdding(true)}>
            <Icon name="plus" small />
            New webhook
          </RoleButton>
          <RoleLink needs="member" {...newAutomation}>
            <Icon name="plus" small />
            New automation
          </RoleLink>
          <DeleteButton factoryUid={factoryUid} name={name} />
          <MoreMenu path={`/factory/${factoryUid}`} />
        </>
      }
      tabs={<FactoryTabs factoryUid={factoryUid} tab={tab} />}
    >
      {tab === 'definition' ? (
        <Definition factoryUid={factoryUid} name={name} />
      ) : tab === 'source' ? (
        <Source factoryUid={factoryUid} />
      ) : (
        <FactoryParts factoryUid={factoryUid} agents={agents} />
      )}
      <Suspense>{isAdding && <NewWebhook factoryUid={factoryUid} close={() => setAdding(false)} />}</Suspense>
    </Page>
  );
}

/** Returns the reasons why automations of the factory cannot fire. */
const problemsOf = (automations: ReturnType<typeof useTeamThings>['automations']['data'] = []): string[] =>
  automations.flatMap(({ name, problems = [] }) =>
    problems.map((fault) => `${name}: ${typeof fault === 'string' ? fault : JSON.stringify(fault)}`),
  );

function FactoryTabs({ factoryUid, tab }: { factoryUid: string; tab: string }) {
  const problems = problemsOf(useTeamThings(factoryUid).automations.data).length;
  const drift = useFactoryDefinition(factoryUid).data?.drift.length ?? 0;
  const lastSync = useFactorySource(factoryUid).data?.last_sync;
  const isStale = lastSync !== undefined && lastSync.outcome !== 'applied';
  const tabs = [
    [undefined, 'Map', problems > 0 && problems],
    ['definition', 'Definition', drift > 0 && `${drift} changed`],
    ['source', 'Source in git', isStale && lastSync.outcome.replaceAll('_', ' ')],
  ] as const;
  return (
    <QueryTabs
      label="Views of the factory"
      tabs={tabs.map(([each, title, asks]) => ({
        name: (
          <>
            {title}
            {asks !== false && <Count asks>{asks}</Count>}
          </>
        ),
        search: { tab: each },
        isCurrent: (each ?? 'map') === tab,
      }))}
    />
  );
}

/** Shows the map of a factory, its webhooks and its automations. */
function FactoryParts({ factoryUid, agents }: Pick<FactoryProps, 'factoryUid'> & Pick<Factory, 'agents'>) {
  const { webhooks, automations } = useTeamThings(factoryUid);
  const problems = problemsOf(automations.data);
  const namesSchedules = automations.data?.some(({ triggers }) =>
    triggers.some(({ filter }) => scheduleIdsOf(filter).length > 0),
  );
  const schedules = useSchedules(namesSchedules === true).data;
  return (
    <Content>
      <Problem error={webhooks.error ?? automations.error} />
      {problems.length > 0 && (
        <Note tone="wait">
          <Icon name="warn" />
          <ul>
            {problems.map((text) => (
              <li key={text}>{visibleText(text)}</li>
            ))}
          </ul>
        </Note>
      )}
      {webhooks.data && automations.data && (
        <FactoryMap
          parts={mapParts({ factoryUid, agents, schedules, webhooks: webhooks.data, automations: automations.data })}
        />
      )}
      <Stack as="section" gap={2}>
        <h2>Webhooks</h2>
        <WebhookTable webhooks={webhooks.data ?? []} />
      </Stack>
      <Stack as="section" gap={2}>
        <h2>Automations</h2>
        <AutomationTable automations={automations.data ?? []} />
      </Stack>
    </Content>
  );
}

function DeleteButton({ factoryUid, name }: FactoryProps) {
  const client = useClient();
  const { team } = useSession();
  const queries = useQueryClient();
  const navigate = useNavigate();
  const { webhooks, automations } = useTeamThings(factoryUid);
  return (
    <AskButton
      needs="member"
      kind="danger"
      question={{
        title: `Delete ${name}?`,
        text: `${countText(webhooks.data?.length ?? 0, 'webhook')} and ${countText(automations.data?.length ?? 0, 'automation')} are deleted with it, and senders get 404. Runs stay.`,
        action: 'Delete the factory',
        run: async () => {
          await client.deleteFactory({ params: { factoryUid } });
          await queries.invalidateQueries({ queryKey: ['factories', team.uid] });
          await navigate({ to: '/factories' });
        },
      }}
    >
      Delete…
    </AskButton>
  );
}
