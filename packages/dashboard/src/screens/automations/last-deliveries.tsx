import { visibleText } from '@runyard/contract/wire/visible';
import { Link } from '@tanstack/react-router';
import { useRead } from '../../api/read.ts';
import { P, Stack } from '../../parts/blocks.tsx';
import { Checks, Verdict, VerdictHead } from '../../parts/checks.tsx';
import { countText } from '../../parts/format.ts';
import { Icon } from '../../parts/icon.tsx';
import { look } from '../../parts/look.ts';
import { Problem } from '../../parts/problem.tsx';
import { Ago } from '../../parts/time.tsx';

/**
 * Compares the filter with the last stored deliveries of a webhook. Shows how many deliveries match, which deliveries do not match, and
 * why.
 */
export function LastDeliveries({
  params,
  filter,
  count,
}: {
  params: { readonly factoryUid: string; readonly webhookUid: string };
  filter: unknown;
  count: number;
}) {
  const { factoryUid, webhookUid } = params;
  const { data, error } = useRead(
    ['test-filter', factoryUid, webhookUid, JSON.stringify(filter), count],
    (client) =>
      client.testFilterOnDeliveries({
        params: { factoryUid },
        body: { filter, webhook_uid: webhookUid, limit: count },
      }),
    { retry: false, placeholderData: (before) => before },
  );
  if (error) return <Problem error={error} />;
  if (data === undefined) return null;
  if (data.compared === 0) return <P tone="dim">The webhook has no stored payload yet.</P>;
  return (
    <Stack gap={2}>
      <P medium role="status">
        {`${data.matched} of the last ${countText(data.compared, 'delivery', 'deliveries')} match`}
      </P>
      {data.deliveries.map(({ delivery_id: id, event, received_at: at, would_trigger: matches, checks }) => (
        <Verdict key={id}>
          <VerdictHead>
            <Icon name={matches ? 'check' : 'x'} small tone={matches ? 'good' : 'dim'} />
            <Link
              className={look({ grow: true, cut: true })}
              to="/factories/$factoryUid/webhooks/$webhookUid/deliveries/$deliveryId"
              params={{ ...params, deliveryId: id }}
            >
              {visibleText(event ?? id)}
            </Link>
            <Ago time={at} tone="dim" small />
          </VerdictHead>
          {checks.length > 0 && <Checks checks={checks} />}
        </Verdict>
      ))}
    </Stack>
  );
}
