/** Shows the log of deliveries to a webhook. */
import type {
  AutomationOutcome,
  WebhookDeliveryLabel as Label,
  WebhookDelivery,
} from '@runyard/contract/webhooks/webhooks';
import type { Command } from 'commander';
import { type Context, processContext } from '../../context/context.ts';
import { asJson, webhookHelp } from '../../input/options.ts';
import { connect } from '../../service/connect.ts';
import { findWebhook } from '../../service/named.ts';
import { harmlessJson, harmlessLine } from '../../terminal/harmless.ts';
import type { ListColumn } from '../../terminal/list.ts';

/** Reasons why a delivery was not evaluated. */
const refusalOf: Readonly<Record<Exclude<Label, 'ACCEPTED'>, string>> = {
  DUPLICATE: 'a delivery with this identity was accepted before',
  REJECTED_AUTH: 'it did not have the credential of the webhook, or its signature is wrong or too old',
  REJECTED_INVALID_JSON: 'its body is not JSON in UTF-8',
  REJECTED_TOO_LARGE: 'its body is larger than a webhook accepts',
};
const notSelected = 'no automation selects the webhook';

/** Returns one line that says why automations started no run for a delivery. Returns an empty text if all automations started a run. */
function whyNot({ label, automations = [], reason: why }: WebhookDelivery): string {
  if (why !== undefined) return why;
  if (label !== 'ACCEPTED') return refusalOf[label];
  if (automations.length === 0) return notSelected;
  const [first, ...others] = automations.filter(({ run_id: run }) => run === undefined);
  const reason = first && outcomeOf(first);
  return others.length === 0 ? (reason ?? '') : `${reason}, and ${others.length} more`;
}

const outcomeOf = ({ matched, reason, run_id: run }: AutomationOutcome): string =>
  run === undefined ? (reason ?? (matched ? 'no run was started' : 'no trigger matches')) : `run ${run}`;

/** Columns of the list of deliveries. If a delivery started no run, its line has the reason. */
export const deliveryColumns: readonly ListColumn<WebhookDelivery>[] = [
  { header: 'DELIVERY', text: ({ delivery_id }) => delivery_id },
  { header: 'LABEL', text: ({ label: each }) => each },
  { header: 'BYTES', align: 'right', text: ({ size_bytes }) => String(size_bytes) },
  { header: 'RECEIVED', ago: ({ received_at }) => received_at },
  { header: 'RUNS', align: 'right', text: ({ runs = [] }) => String(runs.length) },
  {
    header: 'IDENTITY',
    flexible: true,
    text: ({ identity = '' }) => (identity.startsWith('sha256:') ? `${identity.slice(0, 15)}…` : identity),
    raw: ({ identity = '' }) => identity,
  },
  { header: 'REASON', sentence: true, text: whyNot },
];

/** Shows one delivery: the outcome of each automation, and its payload. */
export async function showDelivery(
  context: Context,
  uid: string,
  deliveryId: string,
  options: { readonly json?: true },
): Promise<void> {
  const client = connect(context);
  const params = await findWebhook(client, uid);
  const { payload, ...delivery } = await client.getWebhookDelivery({ params: { ...params, deliveryId } });
  if (options.json) return void context.out(`${harmlessJson({ ...delivery, payload })}\n`);
  const line = (text: string) => context.out(`${harmlessLine(text, 2_000)}\n`);
  const { delivery_id: id, label, received_at: time, size_bytes: bytes, identity, replay_of: original } = delivery;
  line(`${id} ${label}, ${bytes} bytes, ${time}`);
  if (identity !== undefined) line(`identity ${identity}`);
  if (original !== undefined) line(`replay of ${original}`);
  const outcomes = delivery.automations ?? [];
  if (delivery.event !== undefined) line(`event ${delivery.event}`);
  if (delivery.reason !== undefined) line(`- ${delivery.reason}`);
  else if (label !== 'ACCEPTED') line(`- ${refusalOf[label]}`);
  else if (outcomes.length === 0) line(`- ${notSelected}`);
  const { automations } = await client.listAutomations({ params: { factoryUid: params.factoryUid } });
  for (const each of outcomes) {
    const name = automations.find(({ uid: one }) => one === each.automation_id)?.name ?? '(deleted)';
    line(`${each.run_id === undefined ? '-' : '+'} ${each.automation_id} ${name}: ${outcomeOf(each)}`);
  }
  if (payload !== undefined) context.out(`${harmlessJson(payload, 2)}\n`);
  else if (label === 'ACCEPTED') line('The payload was deleted to make room.');
}

/** Declares `delivery` of `webhooks`. */
export function declareDelivery(webhooks: Command): void {
  webhooks
    .command('delivery')
    .description('show a delivery with its payload, and the outcome and reason of each automation')
    .argument('<uid>', webhookHelp)
    .argument('<delivery>', 'id of the delivery')
    .option(...asJson)
    .action((uid, delivery, options) => showDelivery(processContext(), uid, delivery, options));
}
