/** Tables of the webhooks and automations of one factory or of all factories. Each row shows the last events. */

import type { TeamAutomation, TeamWebhook } from '@runyard/contract/automations/team-lists';
import { visibleText } from '@runyard/contract/wire/visible';
import { type UseQueryResult, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { readAll } from '../../api/lists.ts';
import { useClient, useSession } from '../../api/session.ts';
import { useDeliveries } from '../../api/stream.ts';
import { numberText } from '../../parts/format.ts';
import { Loaded } from '../../parts/loaded.tsx';
import { useSoon } from '../../parts/soon.ts';
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
    <div className="pad stack">
      {kind === 'webhooks' ? (
        <Loaded query={webhooks}>{(rows) => <WebhookTable webhooks={rows} isOfTeam />}</Loaded>
      ) : (
        <Loaded query={automations}>{(rows) => <AutomationTable automations={rows} isOfTeam />}</Loaded>
      )}
    </div>
  );
}

const Factory = ({ thing }: { thing: { readonly factory_uid: string; readonly factory_name: string } }) => (
  <td className="w180 mut">
    <Link to="/factories/$factoryUid" params={{ factoryUid: thing.factory_uid }}>
      {visibleText(thing.factory_name)}
    </Link>
  </td>
);

/** Shows webhooks. A row shows whether the webhook is enabled, the deliveries of the last day, and the time of the last delivery. */
export function WebhookTable({ webhooks, isOfTeam = false }: { webhooks: readonly TeamWebhook[]; isOfTeam?: boolean }) {
  if (webhooks.length === 0)
    return <p className="dim">None. A webhook is an address to which another system sends its events.</p>;
  return (
    <div className="card">
      <table className="tbl in-card">
        <thead>
          <tr>
            <th>Webhook</th>
            {isOfTeam && <th className="w180">Factory</th>}
            <th className="w140">Sender</th>
            <th className="w280">Last 24 hours</th>
            <th className="w120">Last delivery</th>
            <th className="w120">State</th>
          </tr>
        </thead>
        <tbody>
          {webhooks.map((webhook) => (
            <tr key={webhook.uid}>
              <td>
                <Link
                  className="md"
                  to="/factories/$factoryUid/webhooks/$webhookUid"
                  params={{ factoryUid: webhook.factory_uid, webhookUid: webhook.uid }}
                >
                  {visibleText(webhook.name)}
                </Link>
              </td>
              {isOfTeam && <Factory thing={webhook} />}
              <td className="w140 mut">{webhook.signature_scheme ?? webhook.auth_mode.replaceAll('_', ' ')}</td>
              <td className="w280">
                <Counts counts={webhook.last_24_hours} bad="rejected" badWord="refused" />
              </td>
              <td className="w120 mut">
                {webhook.last_delivery ? <Ago time={webhook.last_delivery.received_at} /> : 'none'}
              </td>
              <td className="w120">
                {webhook.enabled ? (
                  <span className="okc">on</span>
                ) : (
                  <span className="badc">{visibleText(webhook.disabled_reason ?? 'off')}</span>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
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
    return <p className="dim">None. An automation starts a run for each event that its filter lets pass.</p>;
  return (
    <div className="card">
      <table className="tbl in-card">
        <thead>
          <tr>
            <th>Automation</th>
            {isOfTeam && <th className="w180">Factory</th>}
            <th className="w180">Events</th>
            <th className="w280">Last 24 hours</th>
            <th className="w140">Last event</th>
            <th className="w80">State</th>
            <th className="w80" aria-label="Runs" />
          </tr>
        </thead>
        <tbody>
          {automations.map((automation) => (
            <tr key={automation.uid}>
              <td>
                <span className="run-c">
                  <Link
                    to="/factories/$factoryUid/automations/$automationUid"
                    params={{ factoryUid: automation.factory_uid, automationUid: automation.uid }}
                  >
                    {visibleText(automation.name)}
                  </Link>
                  {automation.last_spawn_error && (
                    <span className="say badc">{visibleText(automation.last_spawn_error)}</span>
                  )}
                </span>
              </td>
              {isOfTeam && <Factory thing={automation} />}
              <td className="w180 mut">
                {visibleText(automation.triggers.map(({ provider, event }) => `${provider} ${event}`).join(', '))}
              </td>
              <td className="w280">
                <Counts counts={automation.last_24_hours} bad="failed" badWord="failed" />
              </td>
              <td className="w140 mut">
                {automation.last_fire ? (
                  <span title={automation.last_fire.reason}>
                    {`${automation.last_fire.outcome}, `}
                    <Ago time={automation.last_fire.fired_at} />
                  </span>
                ) : (
                  'none'
                )}
              </td>
              <td className="w80">
                {automation.enabled ? <span className="okc">on</span> : <span className="dim">off</span>}
              </td>
              <td className="w80">
                <Link className="link small" to="/runs" search={{ automation_id: automation.uid }}>
                  Its runs
                </Link>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
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
  if (shown.length === 0) return <span className="dim">none</span>;
  return shown.map(([name, count], index) => (
    <span key={name} className={name === bad ? 'badc' : 'mut'}>
      {`${index > 0 ? ', ' : ''}${numberText(count)} ${name === bad ? badWord : name}`}
    </span>
  ));
}
