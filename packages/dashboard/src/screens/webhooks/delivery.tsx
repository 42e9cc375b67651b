import type { AutomationOutcome, WebhookDelivery } from '@runyard/contract/webhooks/webhooks';
import { visibleText } from '@runyard/contract/wire/visible';
import { Link, useNavigate } from '@tanstack/react-router';
import { statusOf } from '../../api/problem.ts';
import { useRead } from '../../api/read.ts';
import { useClient, useMay } from '../../api/session.ts';
import { NotFound } from '../../frame/not-found.tsx';
import { Fields, Hint, Note, P, Row, Stack, Text } from '../../parts/blocks.tsx';
import { Checks, Verdict, VerdictHead } from '../../parts/checks.tsx';
import { Button, ButtonLink } from '../../parts/controls.tsx';
import { SkeletonRows } from '../../parts/empty.tsx';
import { sizeText } from '../../parts/format.ts';
import { Icon } from '../../parts/icon.tsx';
import { copyPath, JsonView, marksOf } from '../../parts/json-view.tsx';
import { useKeys } from '../../parts/keys.ts';
import { look } from '../../parts/look.ts';
import { copyAsCurl } from '../../parts/more-menu.tsx';
import { Problem } from '../../parts/problem.tsx';
import { useQuestion } from '../../parts/question.tsx';
import { RoleButton } from '../../parts/role-button.tsx';
import styles from './webhooks.module.css';

/** Returns a label in sentence case. */
export const labelWord = (label: string): string => {
  const words = label.toLowerCase().replaceAll('_', ' ');
  return words.slice(0, 1).toUpperCase() + words.slice(1);
};

export function Label({ delivery }: { delivery: WebhookDelivery }) {
  const isAccepted = delivery.label === 'ACCEPTED';
  const tone = isAccepted ? 'good' : delivery.label === 'DUPLICATE' ? 'dim' : 'bad';
  return (
    <Text tone={tone} className={styles.label}>
      <Icon name={isAccepted ? 'check' : delivery.label === 'DUPLICATE' ? 'copy' : 'x'} small />
      {labelWord(delivery.label.replace('REJECTED_', ''))}
    </Text>
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
  const { data, error: readError } = useRead(['delivery', params.deliveryId], (client) =>
    client.getWebhookDelivery({ params }),
  );
  const automations = useRead(
    ['factory', params.factoryUid, 'automations'],
    async (client) => (await client.listAutomations({ params: { factoryUid: params.factoryUid } })).automations,
  );
  const { ask, dialog } = useQuestion();
  const replay = async () => {
    const answer = await client.replayWebhookDelivery({ params });
    if ('delivery_id' in answer && typeof answer.delivery_id === 'string')
      await navigate({
        to: '/factories/$factoryUid/webhooks/$webhookUid/deliveries/$deliveryId',
        params: { ...params, deliveryId: answer.delivery_id },
      });
  };
  const askToReplay = () =>
    ask({
      title: 'Replay the delivery?',
      text: 'It is a new delivery with the same payload. The automations decide about it as they are now, and may start runs.',
      action: 'Replay',
      safe: 'Back',
      run: replay,
    });
  const mayReplay = may && data?.label === 'ACCEPTED';
  useKeys([{ key: 'r', does: 'Replay the delivery', run: () => mayReplay && askToReplay() }]);
  if (statusOf(readError) === 404) return <NotFound what="delivery" />;
  // A later read that fails must not replace the delivery: the buttons, and the focus on them, would be lost.
  if (data === undefined) return readError ? <Problem error={readError} /> : <SkeletonRows count={4} />;
  const nameOf = (id: string): string => automations.data?.find(({ uid }) => uid === id)?.name ?? id;
  return (
    <Fields>
      <Row wrap>
        <Label delivery={data} />
        <Text mono cut grow>
          {visibleText(data.event ?? data.delivery_id)}
        </Text>
        <Hint>{sizeText(data.size_bytes)}</Hint>
        <RoleButton needs="member" disabled={!mayReplay} run={askToReplay}>
          <Icon name="again" small />
          Replay…
        </RoleButton>
        <Button
          icon="copy"
          onClick={() =>
            copyAsCurl(`/factory/${params.factoryUid}/webhooks/${params.webhookUid}/deliveries/${params.deliveryId}`)
          }
        >
          Copy as curl
        </Button>
      </Row>
      {dialog}
      {data.reason && (
        <Note as="p" tone="wait">
          {visibleText(data.reason)}
        </Note>
      )}
      {data.replay_of && <P tone="muted" small>{`A replay of ${data.replay_of}`}</P>}
      <Stack as="section" gap={2}>
        <h2>What became of it</h2>
        {(data.automations ?? []).length === 0 && <P tone="dim">{summaryOf(data)}</P>}
        {data.automations?.map((outcome) => (
          <AutomationVerdict
            key={outcome.automation_id}
            outcome={outcome}
            name={nameOf(outcome.automation_id)}
            factoryUid={params.factoryUid}
          />
        ))}
      </Stack>
      {data.headers && (
        <Stack as="section" gap={2}>
          <h2>Headers</h2>
          <JsonView value={data.headers} />
        </Stack>
      )}
      <Stack as="section" gap={2}>
        <h2>Payload</h2>
        {data.payload === undefined ? (
          <P tone="dim">Not stored.</P>
        ) : (
          <JsonView
            value={data.payload}
            onSelect={copyPath}
            marks={marksOf((data.automations ?? []).flatMap(({ checks = [] }) => checks))}
          />
        )}
      </Stack>
    </Fields>
  );
}

function AutomationVerdict({
  outcome,
  name,
  factoryUid,
}: {
  outcome: AutomationOutcome;
  name: string;
  factoryUid: string;
}) {
  const started = outcome.run_id !== undefined;
  return (
    <Verdict>
      <VerdictHead>
        <Icon name={started ? 'check' : outcome.matched ? 'pause' : 'x'} small tone={started ? 'good' : 'dim'} />
        <span>
          <Link
            className={look({ medium: true })}
            to="/factories/$factoryUid/automations/$automationUid"
            params={{ factoryUid, automationUid: outcome.automation_id }}
          >
            {visibleText(name)}
          </Link>{' '}
          <Text tone="muted">{visibleText(textOf(outcome))}</Text>
        </span>
        {outcome.run_id && (
          <ButtonLink small to="/runs/$runId" params={{ runId: outcome.run_id }}>
            Open run
          </ButtonLink>
        )}
      </VerdictHead>
      {outcome.checks && <Checks checks={outcome.checks} />}
    </Verdict>
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
