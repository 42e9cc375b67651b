import type { AutomationOutcome, WebhookDelivery } from '@runyard/contract/webhooks/webhooks';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { statusOf } from '../../api/problem.ts';
import { useClient, useMay } from '../../api/session.ts';
import { NotFound } from '../../frame/not-found.tsx';
import { useAttempts } from '../../parts/attempt.ts';
import { Checks } from '../../parts/checks.tsx';
import { SkeletonRows } from '../../parts/empty.tsx';
import { sizeText } from '../../parts/format.ts';
import { Icon } from '../../parts/icon.tsx';
import { copyPath, JsonView, marksOf } from '../../parts/json-view.tsx';
import { useKeys } from '../../parts/keys.ts';
import { Problem } from '../../parts/problem.tsx';
import { RoleButton } from '../../parts/role-button.tsx';

/** Returns a label in sentence case. */
export const labelWord = (label: string): string => {
  const words = label.toLowerCase().replaceAll('_', ' ');
  return words.slice(0, 1).toUpperCase() + words.slice(1);
};

export function Label({ delivery }: { delivery: WebhookDelivery }) {
  const isAccepted = delivery.label === 'ACCEPTED';
  const className = isAccepted ? 'okc' : delivery.label === 'DUPLICATE' ? 'dim' : 'badc';
  return (
    <span className={`lb ${className}`}>
      <Icon name={isAccepted ? 'check' : delivery.label === 'DUPLICATE' ? 'copy' : 'x'} small />
      {labelWord(delivery.label.replace('REJECTED_', ''))}
    </span>
  );
}

/** For each label except ACCEPTED: a text with the reason why the delivery did not reach any automation. */
const refusals: Readonly<Record<Exclude<WebhookDelivery['label'], 'ACCEPTED'>, string>> = {
  DUPLICATE: 'came before: only the first one counts',
  REJECTED_AUTH: 'refused: its signature, token or password is wrong',
  REJECTED_INVALID_JSON: 'refused: its body is not JSON',
  REJECTED_TOO_LARGE: 'refused: its body is too large',
};

/** Returns one line about the outcome of a delivery. */
export function summaryOf({ label, reason, runs = [], automations = [] }: WebhookDelivery): string {
  if (reason) return visibleText(reason);
  if (label !== 'ACCEPTED') return refusals[label];
  if (runs.length > 0) return runs.length === 1 ? 'started a run' : `started ${runs.length} runs`;
  const matched = automations.filter((each) => each.matched);
  if (matched.length > 0) return visibleText(matched[0]?.reason ?? 'matched, and started no run');
  return automations.length === 0 ? 'no automation selects this webhook' : 'no automation matched';
}

/** Shows one delivery: the outcome of each automation, and its payload. */
export function Delivery({ params }: { params: { factoryUid: string; webhookUid: string; deliveryId: string } }) {
  const client = useClient();
  const may = useMay('member');
  const navigate = useNavigate();
  const { error, attempt } = useAttempts();
  const { data, error: readError } = useQuery({
    queryKey: ['delivery', params.deliveryId],
    queryFn: async () => await client.getWebhookDelivery({ params }),
  });
  const automations = useQuery({
    queryKey: ['factory', params.factoryUid, 'automations'],
    queryFn: async () => (await client.listAutomations({ params: { factoryUid: params.factoryUid } })).automations,
  });
  const replay = async () => {
    await attempt(async () => {
      const answer = await client.replayWebhookDelivery({ params });
      if ('delivery_id' in answer && typeof answer.delivery_id === 'string')
        await navigate({
          to: '/factories/$factoryUid/webhooks/$webhookUid/deliveries/$deliveryId',
          params: { ...params, deliveryId: answer.delivery_id },
        });
    });
  };
  const mayReplay = may && data?.label === 'ACCEPTED';
  useKeys([{ key: 'r', does: 'Replay the delivery', run: () => mayReplay && void replay() }]);
  if (statusOf(readError) === 404) return <NotFound what="delivery" />;
  if (readError) return <Problem error={readError} />;
  if (data === undefined) return <SkeletonRows count={4} />;
  const nameOf = (id: string): string => automations.data?.find(({ uid }) => uid === id)?.name ?? id;
  return (
    <div className="form">
      <div className="row wrap">
        <Label delivery={data} />
        <span className="mono cut grow">{visibleText(data.event ?? data.delivery_id)}</span>
        <span className="dim small">{sizeText(data.size_bytes)}</span>
        <RoleButton needs="member" disabled={!mayReplay} run={() => void replay()}>
          <Icon name="again" small />
          Replay
        </RoleButton>
      </div>
      <Problem error={error} />
      {data.reason && <p className="note wait">{visibleText(data.reason)}</p>}
      {data.replay_of && <p className="mut small">{`A replay of ${data.replay_of}`}</p>}
      <section className="stack s2">
        <h2>What became of it</h2>
        {(data.automations ?? []).length === 0 && <p className="dim">{summaryOf(data)}</p>}
        {data.automations?.map((outcome) => (
          <Verdict
            key={outcome.automation_id}
            outcome={outcome}
            name={nameOf(outcome.automation_id)}
            factoryUid={params.factoryUid}
          />
        ))}
      </section>
      {data.headers && (
        <section className="stack s2">
          <h2>Headers</h2>
          <JsonView value={data.headers} />
        </section>
      )}
      <section className="stack s2">
        <h2>Payload</h2>
        {data.payload === undefined ? (
          <p className="dim">Not stored.</p>
        ) : (
          <JsonView
            value={data.payload}
            onSelect={copyPath}
            marks={marksOf((data.automations ?? []).flatMap(({ checks = [] }) => checks))}
          />
        )}
      </section>
    </div>
  );
}

function Verdict({ outcome, name, factoryUid }: { outcome: AutomationOutcome; name: string; factoryUid: string }) {
  const started = outcome.run_id !== undefined;
  return (
    <div className="verdict">
      <div className="sum">
        <Icon name={started ? 'check' : outcome.matched ? 'pause' : 'x'} small className={started ? 'okc' : 'dim'} />
        <span>
          <Link
            className="md"
            to="/factories/$factoryUid/automations/$automationUid"
            params={{ factoryUid, automationUid: outcome.automation_id }}
          >
            {visibleText(name)}
          </Link>{' '}
          <span className="mut">{visibleText(textOf(outcome))}</span>
        </span>
        {outcome.run_id && (
          <Link className="btn sm" to="/runs/$runId" params={{ runId: outcome.run_id }}>
            Open run
          </Link>
        )}
      </div>
      {outcome.checks && <Checks checks={outcome.checks} />}
    </div>
  );
}

/**
 * Returns a text about the outcome of a delivery for one automation. Conditions that were not met are not in this text, because a separate
 * list shows them.
 */
function textOf({ matched, reason, run_id: runId, checks }: AutomationOutcome): string {
  if (checks !== undefined) return 'does not match';
  if (reason !== undefined) return reason;
  return runId !== undefined ? 'matched and started a run' : matched ? 'matched' : 'does not match';
}
