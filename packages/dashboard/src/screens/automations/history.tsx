import type { Automation } from '@runyard/contract/automations/automations';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQuery } from '@tanstack/react-query';
import { useClient } from '../../api/session.ts';
import { Fields, P, Text, TextLink } from '../../parts/blocks.tsx';
import { CheckList } from '../../parts/checks.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Problem } from '../../parts/problem.tsx';
import { Ago } from '../../parts/time.tsx';

/** Number of the factory's deliveries among which the page looks for those that this automation has decided about. */
const mostDeliveries = 100;
const mostFires = 30;
/** Maximum number of rows. */
const mostRows = 30;

/** One delivery or time about which the automation has decided. */
interface Row {
  readonly id: string;
  readonly at: string;
  /** Name of the schedule, or of the event of a delivery. */
  readonly name: string;
  /** Absent: a time, which has no page of its own. */
  readonly delivery?: { readonly webhookUid: string; readonly deliveryId: string };
  readonly outcome: 'started' | 'waiting' | 'skipped' | 'failed' | 'no match';
  readonly reason: string | undefined;
  readonly runId: string | undefined;
}

const icons = { started: 'check', waiting: 'pause', skipped: 'pause', failed: 'x', 'no match': 'x' } as const;
const tones = { started: 'good', waiting: 'wait', skipped: 'dim', failed: 'bad', 'no match': 'dim' } as const;

/** Lists the last deliveries and times about which the automation has decided: the run that started, or why none started. */
export function History({ factoryUid, automation }: { factoryUid: string; automation: Automation }) {
  const client = useClient();
  const automationUid = automation.uid;
  const { data, error } = useQuery({
    queryKey: ['automation', automationUid, 'history'],
    queryFn: async () => {
      const [{ fires }, { deliveries }] = await Promise.all([
        client.listAutomationFires({ params: { factoryUid, automationUid }, query: { limit: mostFires } }),
        client.listTeamDeliveries({ query: { factory_uid: factoryUid, label: 'ACCEPTED', limit: mostDeliveries } }),
      ]);
      const times = fires.map(
        ({ id, due_at: due, fired_at: fired, schedule_name: name, outcome, reason, run_id: runId }): Row => ({
          id,
          at: due ?? fired,
          name: name ?? 'schedule',
          outcome,
          reason,
          runId,
        }),
      );
      const events = deliveries.flatMap((delivery): Row[] => {
        const found = delivery.automations?.find(({ automation_id: id }) => id === automationUid);
        if (found === undefined) return [];
        const { delivery_id: deliveryId, webhook_uid: webhookUid, event, received_at: at } = delivery;
        return [
          {
            id: deliveryId,
            at,
            name: event ?? 'delivery',
            delivery: { webhookUid, deliveryId },
            outcome: found.run_id !== undefined ? 'started' : found.matched ? 'skipped' : 'no match',
            reason: found.reason,
            runId: found.run_id,
          },
        ];
      });
      return [...times, ...events].sort((a, b) => Date.parse(b.at) - Date.parse(a.at)).slice(0, mostRows);
    },
  });
  return (
    <Fields as="section" aria-label="What fired">
      <h2>What fired, and why not</h2>
      <Problem error={error} />
      {data?.length === 0 && (
        <P tone="dim">{`Nothing yet: no time, and none of the last ${mostDeliveries} deliveries of the factory.`}</P>
      )}
      <CheckList>
        {data?.map(({ id, at, name, delivery, outcome, reason, runId }) => (
          <li key={id}>
            <Icon name={icons[outcome]} small tone={tones[outcome]} />
            <span>
              <Ago time={at} tone="dim" small />{' '}
              {delivery ? (
                <TextLink
                  to="/factories/$factoryUid/webhooks/$webhookUid/deliveries/$deliveryId"
                  params={{ factoryUid, ...delivery }}
                >
                  {visibleText(name)}
                </TextLink>
              ) : (
                visibleText(name)
              )}{' '}
              <Text tone={tones[outcome]}>{outcome}</Text>{' '}
              {runId !== undefined && (
                <TextLink mono to="/runs/$runId" params={{ runId }}>
                  {runId.slice(0, 8)}
                </TextLink>
              )}
              {runId === undefined && reason !== undefined && <Text tone="muted">{visibleText(reason)}</Text>}
            </span>
          </li>
        ))}
      </CheckList>
    </Fields>
  );
}
