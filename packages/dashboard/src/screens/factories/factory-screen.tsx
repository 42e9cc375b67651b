import { visibleText } from '@runyard/contract/wire/visible';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { lazy, Suspense, useState } from 'react';
import { statusOf } from '../../api/problem.ts';
import { useClient, useSession } from '../../api/session.ts';
import { NotFound } from '../../frame/not-found.tsx';
import { Page } from '../../frame/page.tsx';
import { oneOf } from '../../frame/search.ts';
import { SkeletonRows } from '../../parts/empty.tsx';
import { countText } from '../../parts/format.ts';
import { Icon } from '../../parts/icon.tsx';
import { MoreMenu } from '../../parts/more-menu.tsx';
import { Problem } from '../../parts/problem.tsx';
import { RoleButton, RoleLink } from '../../parts/role-button.tsx';
import { Definition, useFactoryDefinition } from './definition.tsx';
import { FactoryMap } from './factory-map.tsx';
import { Source, useFactorySource } from './source.tsx';
import { AutomationTable, useTeamThings, WebhookTable } from './team-tables.tsx';

const ConfirmDialog = lazy(async () => ({ default: (await import('../../parts/dialog.tsx')).ConfirmDialog }));
const NewWebhook = lazy(async () => ({ default: (await import('../webhooks/new-webhook.tsx')).NewWebhook }));

const route = getRouteApi('/shell/factories/$factoryUid');

const Crumb = () => (
  <Link to="/factories" className="hide-m">
    Factories
  </Link>
);

/**
 * Shows one factory. The screen shows its automations, marks automations that cannot fire, and shows whether the factory matches its
 * repository.
 */
export function FactoryScreen() {
  const { factoryUid } = route.useParams();
  const tab = oneOf(route.useSearch({ select: (search) => search.tab })) ?? 'map';
  const client = useClient();
  const { team } = useSession();
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [open, setOpen] = useState<'webhook' | 'delete' | undefined>();
  const params = { factoryUid };
  const factory = useQuery({
    queryKey: ['factory', factoryUid],
    queryFn: async () => await client.getFactory({ params }),
  });
  const { webhooks, automations } = useTeamThings(factoryUid);
  const drift = useFactoryDefinition(factoryUid).data?.drift.length ?? 0;
  const lastSync = useFactorySource(factoryUid).data?.last_sync;
  if (statusOf(factory.error) === 404)
    return (
      <Page title="Factory" crumbs={<Crumb />}>
        <NotFound what="factory" />
      </Page>
    );
  if (factory.data === undefined)
    return (
      <Page title="Factory" crumbs={<Crumb />}>
        {factory.error ? <Problem error={factory.error} /> : <SkeletonRows />}
      </Page>
    );
  const problems = (automations.data ?? []).flatMap(({ name, problems: faults }) =>
    (faults ?? []).map((fault) => `${name}: ${typeof fault === 'string' ? fault : JSON.stringify(fault)}`),
  );
  return (
    <Page
      title={factory.data.name}
      crumbs={<Crumb />}
      actions={
        <>
          <RoleButton needs="member" run={() => setOpen('webhook')}>
            <Icon name="plus" small />
            New webhook
          </RoleButton>
          <RoleLink
            needs="member"
            to="/factories/$factoryUid/automations/$automationUid"
            params={{ factoryUid, automationUid: 'new' }}
          >
            <Icon name="plus" small />
            New automation
          </RoleLink>
          <RoleButton needs="member" className="btn dan" run={() => setOpen('delete')}>
            Delete…
          </RoleButton>
          <MoreMenu path={`/factory/${factory.data.uid}`} />
        </>
      }
      tabs={
        <nav className="tabs" aria-label="Views of the factory">
          {(['map', 'definition', 'source'] as const).map((name) => (
            <Link
              key={name}
              to="/factories/$factoryUid"
              params={params}
              search={name === 'map' ? {} : { tab: name }}
              activeOptions={{ exact: true }}
              aria-current={tab === name ? 'page' : undefined}
            >
              {name === 'map' ? 'Map' : name === 'definition' ? 'Definition' : 'Source in git'}
              {name === 'map' && problems.length > 0 && <span className="n ask">{problems.length}</span>}
              {name === 'definition' && drift > 0 && <span className="n ask">{`${drift} changed`}</span>}
              {name === 'source' && lastSync !== undefined && lastSync.outcome !== 'applied' && (
                <span className="n ask">{lastSync.outcome.replaceAll('_', ' ')}</span>
              )}
            </Link>
          ))}
        </nav>
      }
    >
      {tab === 'definition' ? (
        <Definition factoryUid={factoryUid} name={factory.data.name} />
      ) : tab === 'source' ? (
        <Source factoryUid={factoryUid} />
      ) : (
        <div className="wide">
          <Problem error={webhooks.error ?? automations.error} />
          {problems.length > 0 && (
            <div className="note wait">
              <Icon name="warn" />
              <ul>
                {problems.map((text) => (
                  <li key={text}>{visibleText(text)}</li>
                ))}
              </ul>
            </div>
          )}
          {webhooks.data && automations.data && (
            <FactoryMap factoryUid={factoryUid} webhooks={webhooks.data} automations={automations.data} />
          )}
          <section className="stack s2">
            <h2>Webhooks</h2>
            <WebhookTable webhooks={webhooks.data ?? []} />
          </section>
          <section className="stack s2">
            <h2>Automations</h2>
            <AutomationTable automations={automations.data ?? []} />
          </section>
        </div>
      )}
      <Suspense>
        {open === 'webhook' && <NewWebhook factoryUid={factoryUid} close={() => setOpen(undefined)} />}
        {open === 'delete' && (
          <ConfirmDialog
            title={`Delete ${factory.data.name}?`}
            action="Delete the factory"
            run={async () => {
              await client.deleteFactory({ params });
              await queries.invalidateQueries({ queryKey: ['factories', team.uid] });
              await navigate({ to: '/factories' });
            }}
            close={() => setOpen(undefined)}
          >
            {`${countText(webhooks.data?.length ?? 0, 'webhook')} and ${countText(automations.data?.length ?? 0, 'automation')} are deleted with it, and senders get 404. Runs stay.`}
          </ConfirmDialog>
        )}
      </Suspense>
    </Page>
  );
}
