/** Tables of the webhooks and automations of one factory or of all factories. Each row shows the last events. */

import type { TeamAutomation, TeamWebhook } from '@runyard/contract/automations/team-lists';
import { visibleText } from '@runyard/contract/wire/visible';
import { type UseQueryResult, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { readAll } from '../../api/lists.ts';
import { useClient, useSession } from '../../api/session.ts';
import { useDeliveries } from '../../api/stream.ts';
import { P, Stack, Text, TextLink } from '../../parts/blocks.tsx';
import { numberText } from '../../parts/format.ts';
import { Loaded } from '../../parts/loaded.tsx';
import { look } from '../../parts/look.ts';
import { useSoon } from '../../parts/soon.ts';
import { Cell, RunCell, Say, Table } from '../../parts/table.tsx';
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

const Factory = ({ thing }: { thing: { readonly factory_uid: string; readonly factory_name: string } }) => (
  <Cell tone="muted" style={{ width: 180 }}>
    <Link to="/factories/$factoryUid" params={{ factoryUid: thing.factory_uid }}>
      {visibleText(thing.factory_name)}
    </Link>
  </Cell>
);

/** Shows webhooks. A row shows whether the webhook is enabled, the deliveries of the last day, and the time of the last delivery. */
export function WebhookTable({ webhooks, isOfTeam = false }: { webhooks: readonly TeamWebhook[]; isOfTeam?: boolean }) {
  if (webhooks.length === 0)
    return <P tone="dim">None. A webhook is an address to which another system sends its events.</P>;
  return (
    <Table
      columns={[
        { name: 'Webhook' },
        ...(isOfTeam ? [{ name: 'Factory', width: 180 }] : []),
        { name: 'Sender', width: 140 },
        { name: 'Last 24 hours', width: 280 },
        { name: 'Last delivery', width: 120 },
        { name: 'State', width: 120 },
      ]}
    >
      {webhooks.map((webhook) => (
        <tr key={webhook.uid}>
          <td>
            <Link
              className={look({ medium: true })}
              to="/factories/$factoryUid/webhooks/$webhookUid"
              params={{ factoryUid: webhook.factory_uid, webhookUid: webhook.uid }}
            >
              {visibleText(webhook.name)}
            </Link>
          </td>
          {isOfTeam && <Factory thing={webhook} />}
          <Cell tone="muted" style={{ width: 140 }}>
            {webhook.signature_scheme ?? webhook.auth_mode.replaceAll('_', ' ')}
          </Cell>
          <Cell style={{ width: 280 }}>
            <Counts counts={webhook.last_24_hours} bad="rejected" badWord="refused" />
          </Cell>
          <Cell tone="muted" style={{ width: 120 }}>
            {webhook.last_delivery ? <Ago time={webhook.last_delivery.received_at} /> : 'none'}
          </Cell>
          <Cell style={{ width: 120 }}>
            {webhook.enabled ? (
              <Text tone="good">on</Text>
            ) : (
              <Text tone="bad">{visibleText(webhook.disabled_reason ?? 'off')}</Text>
            )}
          </Cell>
        </tr>
      ))}
    </Table>
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
    <Table
      columns={[
        { name: 'Automation' },
        ...(isOfTeam ? [{ name: 'Factory', width: 180 }] : []),
        { name: 'Events', width: 180 },
        { name: 'Last 24 hours', width: 280 },
        { name: 'Last event', width: 140 },
        { name: 'State', width: 80 },
        { name: 'Runs', width: 80, spoken: true },
      ]}
    >
      {automations.map((automation) => (
        <tr key={automation.uid}>
          <td>
            <RunCell>
              <Link
                to="/factories/$factoryUid/automations/$automationUid"
                params={{ factoryUid: automation.factory_uid, automationUid: automation.uid }}
              >
                {visibleText(automation.name)}
              </Link>
              {automation.last_spawn_error && <Say tone="bad">{visibleText(automation.last_spawn_error)}</Say>}
            </RunCell>
          </td>
          {isOfTeam && <Factory thing={automation} />}
          <Cell tone="muted" style={{ width: 180 }}>
            {visibleText(automation.triggers.map(({ provider, event }) => `${provider} ${event}`).join(', '))}
          </Cell>
          <Cell style={{ width: 280 }}>
            <Counts counts={automation.last_24_hours} bad="failed" badWord="failed" />
          </Cell>
          <Cell tone="muted" style={{ width: 140 }}>
            {automation.last_fire ? (
              <span title={automation.last_fire.reason}>
                {`${automation.last_fire.outcome}, `}
                <Ago time={automation.last_fire.fired_at} />
              </span>
            ) : (
              'none'
            )}
          </Cell>
          <Cell style={{ width: 80 }}>
            {automation.enabled ? <Text tone="good">on</Text> : <Text tone="dim">off</Text>}
          </Cell>
          <Cell style={{ width: 80 }}>
            <TextLink small to="/runs" search={{ automation_id: automation.uid }}>
              Its runs
            </TextLink>
          </Cell>
        </tr>
      ))}
    </Table>
  );
}

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
