/** Forwards the deliveries of a webhook to a program on this machine. */
import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { ApiError } from '@runyard/client';
import { schemeOf } from '@runyard/contract/webhooks/signature-schemes/schemes';
import { signHeaders } from '@runyard/contract/webhooks/signature-schemes/sign';
import type { Webhook } from '@runyard/contract/webhooks/webhooks';
import type { Command } from 'commander';
import { type Context, processContext } from '../../context/context.ts';
import { Failure } from '../../exits/failure.ts';
import { webhookHelp } from '../../input/options.ts';
import { connect } from '../../service/connect.ts';
import { findWebhook } from '../../service/named.ts';
import { harmlessLine } from '../../terminal/harmless.ts';
import { secretFrom } from './secret.ts';

type Client = ReturnType<typeof connect>;
type WebhookParams = { readonly factoryUid: string; readonly webhookUid: string };
type Sender = Pick<Webhook, 'auth_mode' | 'signature_scheme' | 'signature'>;

const lookEveryMs = 1_000;
const page = { limit: 100, label: 'ACCEPTED' } as const;

interface ListenOptions {
  readonly to: string;
  readonly secretFile?: string;
}

/**
 * Forwards each delivery that the service accepts from now on to a URL until the command is interrupted. Does not change the body of a
 * delivery.
 */
export async function listenToWebhook(context: Context, uid: string, options: ListenOptions): Promise<void> {
  const { to } = options;
  if (!/^https?:$/.test(URL.parse(to)?.protocol ?? ''))
    throw new Failure('--to: it must be an http:// or https:// URL');
  const client = connect(context);
  const params = await findWebhook(client, uid);
  const sender = await client.getWebhook({ params });
  const secret = secretFrom(options.secretFile) ?? newSecret(sender);
  const look = await watchLog(client, params);
  context.report(`deliveries to ${uid} go to ${harmlessLine(to)}. Ctrl-C ends this.`);
  context.report(proofOf(sender, options.secretFile === undefined ? secret : undefined));
  for (;;) {
    for (const deliveryId of await look()) {
      const result = await forward(client, { ...params, deliveryId }, { to, sender, secret });
      context.out(`${deliveryId} ${result}\n`);
    }
    await delay(lookEveryMs);
  }
}

/** Makes a secret in the form that the signature scheme requires. */
const newSecret = (sender: Sender): string =>
  schemeOf(sender.signature_scheme, sender)?.key === 'whsec'
    ? `whsec_${randomBytes(32).toString('base64')}`
    : randomBytes(32).toString('hex');

/**
 * Returns a text that explains how the receiving program can verify the deliveries. `made`: the secret that the command has created;
 * undefined if the user named a file with a secret.
 */
function proofOf({ auth_mode: mode, signature_scheme: scheme }: Sender, made: string | undefined): string {
  const source = made === undefined ? 'the secret of --secret-file' : `this secret, until Ctrl-C: ${made}`;
  return mode === 'signature'
    ? `They are signed as ${scheme} signs, with ${source}`
    : `Their bearer token is ${source}`;
}

/**
 * Returns a function that returns the deliveries since its last call, oldest first. The last id alone does not show which deliveries
 * are new: a delivery gets its id before its transaction commits, so it may appear after a delivery with a later id.
 */
async function watchLog(client: Client, params: WebhookParams): Promise<() => Promise<string[]>> {
  const read = async () =>
    (await client.listWebhookDeliveries({ params, query: page })).deliveries.map(({ delivery_id: id }) => id);
  const first = await read();
  // Ignores deliveries that are older than the first page, because they appear in the page when newer deliveries are deleted. Ids sort by
  // time.
  const oldest = first.length < page.limit ? '' : (first.at(-1) ?? '');
  let seen = new Set(first);
  return async () => {
    const ids = await read();
    const fresh = ids.filter((id) => id > oldest && !seen.has(id));
    seen = new Set([...ids, ...[...seen].filter((id) => id > (ids.at(-1) ?? ''))]);
    return fresh.reverse();
  };
}

interface Target {
  readonly to: string;
  readonly sender: Sender;
  readonly secret: string;
}

/** Sends a delivery to the program. Returns the status of the program's answer, or the reason why there is no answer. */
async function forward(
  client: Client,
  params: WebhookParams & { readonly deliveryId: string },
  { to, sender, secret }: Target,
): Promise<string> {
  const stored = await readDelivery(client, params);
  if (stored === null) return 'was deleted before it could be forwarded';
  const { body } = stored;
  const headers = { 'content-type': 'application/json', 'x-service-delivery-id': params.deliveryId, ...stored.headers };
  const scheme = sender.auth_mode === 'signature' ? schemeOf(sender.signature_scheme, sender) : null;
  const proof =
    scheme === null
      ? { authorization: `Bearer ${secret}` }
      : signHeaders(scheme, secret, { headers, id: params.deliveryId, body }, Date.now());
  try {
    const answer = await fetch(to, {
      method: 'POST',
      headers: { ...headers, ...proof },
      body,
      redirect: 'manual',
      signal: AbortSignal.timeout(30_000),
    });
    await answer.body?.cancel();
    return String(answer.status);
  } catch (error) {
    // Uses the cause of the error, because the message of the error is only "fetch failed".
    const cause = error instanceof Error ? (error.cause ?? error) : undefined;
    return cause instanceof Error ? harmlessLine(cause.message) : 'no answer';
  }
}

/** Returns the body and the headers of a delivery. Returns null if the service does not store them any more. */
async function readDelivery(client: Client, params: WebhookParams & { readonly deliveryId: string }) {
  try {
    const { headers = {} } = await client.getWebhookDelivery({ params });
    const bytes = await (await client.getWebhookDeliveryPayload({ params })).arrayBuffer();
    return { headers, body: new Uint8Array(bytes) };
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return null;
    throw error;
  }
}

/** Declares `listen` of `webhooks`. */
export function declareListen(webhooks: Command): void {
  webhooks
    .command('listen')
    .description('POST each newly accepted delivery, unchanged, to a program on this machine, until Ctrl-C')
    .argument('<uid>', webhookHelp)
    .requiredOption('--to <url>', 'address of the program, such as http://127.0.0.1:3000/hook')
    .option(
      '--secret-file <file>',
      'file with the secret that signs the deliveries, - for standard input (default: a new secret, which is printed)',
    )
    .addHelpText(
      'after',
      '\nThe body has the received bytes, with the headers that name the event. The signature is a new one in the scheme of the\nwebhook, because the received one may be too old. With --auth token or url_token, a bearer token is sent instead.',
    )
    .action((uid, options) => listenToWebhook(processContext(), uid, options));
}
