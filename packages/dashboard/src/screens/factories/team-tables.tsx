/** Tables of the webhooks and automations of one factory or of all factories. Each row shows the last events. */

import type { TeamAutomation, TeamWebhook } from '@runyard/contract/automations/team-lists';
import { visibleText } from '@runyard/contract/wire/visible';
import { type UseQueryResult, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { readAll } from '../../api/lists.ts';
import { useClient, useSession } from '../../api/session.ts';
import { useDeliveries } from '../../api/stream.ts';
import { P, Stack, Text, TextLink } from '../../parts/blocks.tsx';
import { DataTable } from '../../parts/data-table.tsx';
import { numberText } from '../../parts/format.ts';
import { Loaded } from '../../parts/loaded.tsx';
import { look } from '../../parts/look.ts';
import { useSoon } from '../../parts/soon.ts';
import { RunCell, Say } from '../../parts/table.tsx';
import { Ago } from '../../parts/time.tsx';

/** Pause between two reads of the lists while deliveries arrive, in milliseconds. */
const pauseMs = 2_000;

/**
 * Reads the webhooks and automations of one factory or of all factories. Reads them again while deliveries arrive, and every 30 s
 * because schedules fire without a delivery.
 */
export function useTeamThings(factoryUid?: string): {
  readonly webhooks: UseQueryResult<TeamWebhook[]>;
  readonly automations: UseQueryResult<TeamAutomation[]>;
} {
  const client = useClient();
  const { team } = useSession();
  const queries = useQueryClient();
  const queryKey = factoryUid === undefined ? ['factories', team.uid, 'things'] : ['factory', factoryUid, 'things'];
  const query = { limit: 100, ...(factoryUid === undefined ? {} : { factory_uid: factoryUid }) };
  const webhooks = useQuery({
    queryKey: [...queryKey, 'webhooks'],
    queryFn: () =>
      readAll(async (cursor) => {
        const page = await client.listTeamWebhooks({ query: { ...query, ...cursor } });
        return { things: page.webhooks, next: page.page_info.next_cursor };
      }),
  });
  const automations = useQuery({
    queryKey: [...queryKey, 'automations'],
    queryFn: () =>
      readAll(async (cursor) => {
        const page = await client.listTeamAutomations({ query: { ...query, ...cursor } });
        return { things: page.automations, next: page.page_info.next_cursor };
      }),
  });
  const readSoon = useSoon(() => void queries.invalidateQueries({ queryKey }), pauseMs);
  useDeliveries(({ factory_uid: uid }) => {
    if (factoryUid === undefined || uid === factoryUid) readSoon();
  }, readSoon);
  return { webhooks, automations };
}

/** Shows the webhooks or the automations of all factories. */
export function TeamThings({ kind }: { kind: 'webhooks' | 'automations' }) {
  const { webhooks, automations } = useTeamThings();
  return (
    <Stack pad>
      {kind === 'webhooks' ? (
        <Loaded query={webhooks}>{(rows) => <WebhookTable webhooks={rows} isOfTeam />}</Loaded>
      ) : (
        <Loaded query={automations}>{(rows) => <AutomationTable automations={rows} isOfTeam />}</Loaded>
      )}
    </Stack>
  );
}

const FactoryLink = ({ factory_uid: factoryUid, factory_name: name }: TeamWebhook | TeamAutomation) => (
  <Link to="/factories/$factoryUid" params={{ factoryUid }}>
    {visibleText(name)}
  </Link>
);

/** Shows webhooks. A row shows whether the webhook is enabled, the deliveries of the last day, and the time of the last delivery. */
export function WebhookTable({ webhooks, isOfTeam = false }: { webhooks: readonly TeamWebhook[]; isOfTeam?: boolean }) {
  if (webhooks.length === 0)
    return <P tone="dim">None. A webhook is an address to which another system sends its events.</P>;
  return (
    <DataTable
      items={webhooks}
      keyOf={({ uid }) => uid}
      columns={(column) => [
        column('Webhook', {}, ({ factory_uid: factoryUid, uid: webhookUid, name }) => (
          <Link
            className={look({ medium: true })}
            to="/factories/$factoryUid/webhooks/$webhookUid"
            params={{ factoryUid, webhookUid }}
          >
            {visibleText(name)}
          </Link>
        )),
        ...(isOfTeam ? [column('Factory', { width: 180, tone: 'muted' }, FactoryLink)] : []),
        column(
          'Sender',
          { width: 140, tone: 'muted' },
          ({ signature_scheme: scheme, auth_mode: mode }) => scheme ?? mode.replaceAll('_', ' '),
        ),
        column('Last 24 hours', { width: 280 }, ({ last_24_hours: counts }) => (
          <Counts counts={counts} bad="rejected" badWord="refused" />
        )),
        column('Last delivery', { width: 120, tone: 'muted' }, ({ last_delivery: last }) =>
          last ? <Ago time={last.received_at} /> : 'none',
        ),
        column('State', { width: 120 }, ({ enabled, disabled_reason: reason = 'off' }) =>
          enabled ? <Text tone="good">on</Text> : <Text tone="bad">{visibleText(reason)}</Text>,
        ),
      ]}
    />
  );
}

/**
 * Shows automations. A row shows the triggers of the automation, the outcomes of its events in the last day, and the outcome of its last
 * event.
 */
export function AutomationTable({
  automations,
  isOfTeam = false,
}: {
  automations: readonly TeamAutomation[];
  isOfTeam?: boolean;
}) {
  if (automations.length === 0)
    return <P tone="dim">None. An automation starts a run for each event that its filter lets pass.</P>;
  return (
    <DataTable
      items={automations}
      keyOf={({ uid }) => uid}
      columns={(column) => [
        column('Automation', {}, AutomationLink),
        ...(isOfTeam ? [column('Factory', { width: 180, tone: 'muted' }, FactoryLink)] : []),
        column('Events', { width: 180, tone: 'muted' }, ({ triggers }) =>
          visibleText(triggers.map(({ provider, event }) => `${provider} ${event}`).join(', ')),
        ),
        column('Last 24 hours', { width: 280 }, ({ last_24_hours: counts }) => (
          <Counts counts={counts} bad="failed" badWord="failed" />
        )),
        column('Last event', { width: 140, tone: 'muted' }, ({ last_fire: last }) =>
          last ? (
            <span title={last.reason}>
              {`${last.outcome}, `}
              <Ago time={last.fired_at} />
            </span>
          ) : (
            'none'
          ),
        ),
        column('State', { width: 80 }, ({ enabled }) =>
          enabled ? <Text tone="good">on</Text> : <Text tone="dim">off</Text>,
        ),
        column('Runs', { width: 80, spoken: true }, ({ uid }) => (
          <TextLink small to="/runs" search={{ automation_id: uid }}>
            Its runs
          </TextLink>
        )),
      ]}
    />
  );
}

const AutomationLink = ({ factory_uid, uid, name, last_spawn_error: fault }: TeamAutomation) => (
  <RunCell>
    <Link
      to="/factories/$factoryUid/automations/$automationUid"
      params={{ factoryUid: factory_uid, automationUid: uid }}
    >
      {visibleText(name)}
    </Link>
    {fault && <Say tone="bad">{visibleText(fault)}</Say>}
  </RunCell>
);

/** Shows the counts that are greater than 0. */
function Counts({
  counts,
  bad,
  badWord,
}: {
  counts: Readonly<Record<string, number>>;
  /** Name of the count of failures. The page marks this count, because a person should check it. */
  bad: string;
  badWord: string;
}) {
  const shown = Object.entries(counts).filter(([, count]) => count > 0);
  if (shown.length === 0) return <Text tone="dim">none</Text>;
  return shown.map(([name, count], index) => (
    <Text key={name} tone={name === bad ? 'bad' : 'muted'}>
      {`${index > 0 ? ', ' : ''}${numberText(count)} ${name === bad ? badWord : name}`}
    </Text>
  ));
}
