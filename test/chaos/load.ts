/**
 * Makes the load on an installation: clients that create runs, senders of webhooks, and readers of event streams. A client repeats a
 * request until it gets a clear answer.
 */
import { createHmac, randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { ScheduledAgentItem } from '@runyard/contract/schedules/schedules';
import type { EventSubscriptionWithSecret } from '@runyard/contract/team/event-subscriptions';
import type { WebhookWithSecret } from '@runyard/contract/webhooks/webhooks';
import { type FakeWebhookReceiver, startFakeWebhookReceiver } from '../fakes/webhook-receiver.ts';
import { type CutOffReader, readCutOff } from '../support/cut-off-reader.ts';
import { randomOf } from '../support/random-of.ts';
import type { Installation } from './installation.ts';
import { driverAddress } from './network.ts';
import { markOf } from './watch.ts';

/** Facts that the clients know: answers to their requests, received events and received webhooks. */
export interface Seen {
  /** For the tag of each acknowledged create, the id of its run. The metadata of the run contains the tag. */
  readonly creates: Map<string, string>;
  /** Tags of creates whose client gave up without a clear answer. For such a tag, there may be one run or no run. */
  readonly givenUp: Set<string>;
  /** For the text of each acknowledged follow-up, the id of its run. */
  readonly followups: Map<string, string>;
  readonly cancels: Set<string>;
  /** For the id that the sender gave to each acknowledged delivery, the id that the service returned. */
  readonly deliveries: Map<string, string>;
  /** For the id of each schedule, its first time. It fires each minute. */
  readonly schedules: Map<string, string>;
  /** When the schedules were disabled, by the clock of the database. */
  schedulesEndedAt: string;
  automation: string;
  subscription: string;
  readonly receiver: FakeWebhookReceiver;
  /** Readers of the team's event stream. They have all events, because they start before the first run. */
  readonly readers: CutOffReader[];
  /** Unexpected answers, such as a refused create. */
  readonly refusals: string[];
  /** Number of requests that clients sent again. */
  repeats: number;
}

export interface Load {
  readonly seen: Seen;
  /** Ends the load. Resolves when each client has received its last answer. */
  stop(): Promise<void>;
}

interface Answer {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

const patienceMs = 5_000;
/** Maximum number of tries of a request. Even during the longest fault, far fewer tries fail. */
const mostTries = 100;
const webhookSecret = 'chaos-secret-of-the-webhooks';
const webhookCount = 6;
const scheduleCount = 8;
const sh = (...lines: string[]) => lines.map((line) => `\`\`\`sh\n${line}\n\`\`\``).join('\n');

/** Creates webhooks, schedules and a subscription, and starts the clients. */
export async function startLoad({ key, origins }: Installation, seed: number): Promise<Load> {
  const random = randomOf(seed);
  const seen: Seen = {
    creates: new Map(),
    givenUp: new Set(),
    followups: new Map(),
    cancels: new Set(),
    deliveries: new Map(),
    schedules: new Map(),
    schedulesEndedAt: '',
    automation: '',
    subscription: '',
    receiver: await startFakeWebhookReceiver(driverAddress),
    readers: [],
    refusals: [],
    repeats: 0,
  };
  let isStopping = false;
  let turn = 0;
  const nextOrigin = () => origins[turn++ % origins.length] ?? '';

  /**
   * Sends the request to one service after another until a service gives a clear answer. Returns undefined if no service did so in
   * `tries` tries.
   */
  async function ask(method: string, route: string, init: Partial<RequestInit> = {}, tries = mostTries) {
    for (let count = 1; count <= tries; count += 1) {
      const answer = await fetch(`${nextOrigin()}${route}`, {
        method,
        ...init,
        signal: AbortSignal.timeout(patienceMs),
      })
        .then(async (response): Promise<Answer> => ({ status: response.status, body: await readJson(response) }))
        .catch(() => undefined);
      if (answer !== undefined && answer.status < 500 && ![408, 409, 429].includes(answer.status)) return answer;
      seen.repeats += 1;
      await delay(200 + random() * 800);
    }
    return undefined;
  }
  const callApi = (method: string, route: string, body: object | undefined, tries?: number) =>
    ask(
      method,
      `/api/v1${route}`,
      {
        headers: {
          authorization: `Bearer ${key}`,
          'content-type': 'application/json',
          'idempotency-key': randomUUID(),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      },
      tries,
    );
  async function make<T>(route: string, body: object): Promise<T> {
    const answer = await callApi('POST', route, body);
    if (answer === undefined || answer.status >= 300) throw new Error(`${route}: ${JSON.stringify(answer)}`);
    return answer.body as T;
  }

  const { receiver, readers, schedules } = seen;
  const subscription = await make<EventSubscriptionWithSecret>('/event-subscriptions', {
    url: receiver.url,
    events: ['run.created', 'run.ended'],
  });
  receiver.secrets.push(subscription.secret);
  seen.subscription = subscription.id;
  const url = () => `${nextOrigin()}/api/v1/agent/runs/events`;
  for (let n = 0; n < 2; n += 1) readers.push(readCutOff({ url, key, lifeMs: () => 500 + random() * 15_000 }));
  while (readers.some((reader) => reader.lastId() === '')) await delay(50);
  const factory = await make<{ uid: string }>('/factory', { name: 'Chaos' });
  const webhooks: WebhookWithSecret[] = [];
  for (let n = 0; n < webhookCount; n += 1) {
    const body = { name: `W${n}`, auth_mode: 'signature', signature_scheme: 'github', secret: webhookSecret };
    webhooks.push(await make(`/factory/${factory.uid}/webhooks`, body));
  }
  const webhook_ids = webhooks.map(({ uid }) => uid);
  const automation = await make<{ uid: string }>(`/factory/${factory.uid}/automations`, {
    name: 'A',
    prompt: sh('echo delivered'),
    config: { idle_timeout_minutes: 0 },
    triggers: [{ provider: 'webhook', event: 'received', filter: { webhook_ids } }],
  });
  seen.automation = automation.uid;
  for (let n = 0; n < scheduleCount; n += 1) {
    const body = {
      name: `S${n}`,
      cron_schedule: '@every 1m',
      prompt: sh('echo scheduled'),
      agent_config: { idle_timeout_minutes: 0 },
    };
    const { id, history } = await make<ScheduledAgentItem>('/agent/schedules', body);
    schedules.set(id, history?.next_run ?? '');
  }

  const refuse = (what: string, { status, body }: Answer) =>
    seen.refusals.push(`${what}: ${status} ${JSON.stringify(body)}`);
  const open: Promise<void>[] = [];
  const begin = (work: Promise<void>) => void open.push(work);
  const isAcknowledged = ({ status }: Answer) => status >= 200 && status < 300;

  async function createOne(n: number): Promise<void> {
    const tag = `create-${n}`;
    const more = { ...(random() < 0.3 ? { on_worker_loss: 'resume' } : {}) };
    const attachments =
      random() < 0.2
        ? [
            {
              file_name: 'a.bin',
              mime_type: 'application/octet-stream',
              data: Buffer.alloc(100_000, n).toString('base64'),
            },
          ]
        : [];
    const seconds = (random() ** 3 * 8).toFixed(2);
    const isPatient = random() < 0.9;
    const answer = await callApi(
      'POST',
      '/agent/runs',
      {
        prompt: sh(`echo one ${n} > file; sleep ${seconds}; ${markOf(tag)}`, `sleep 0.1; echo three; ${markOf(tag)}`),
        metadata: { chaos: tag },
        config: { idle_timeout_minutes: 0, ...more },
        ...(attachments.length > 0 ? { attachments } : {}),
      },
      isPatient ? undefined : 1,
    );
    if (answer === undefined) {
      seen.givenUp.add(tag);
      return;
    }
    if (!isAcknowledged(answer)) return void refuse(tag, answer);
    const runId = String(answer.body.run_id);
    seen.creates.set(tag, runId);
    const choice = random();
    await delay(random() * 10_000);
    if (choice < 0.15) return await cancelOne(runId);
    if (choice > 0.35) return;
    // Wait up to 30 s, so that about half of the follow-ups come after the end of their run.
    await delay(random() * 30_000);
    await followUp(runId, tag);
  }
  async function cancelOne(runId: string): Promise<void> {
    const answer = await callApi('POST', `/agent/runs/${runId}/cancel`, undefined);
    if (answer === undefined) return;
    // 400: it had ended.
    if (isAcknowledged(answer)) seen.cancels.add(runId);
    else if (answer.status !== 400) refuse(`cancel ${runId}`, answer);
  }
  async function followUp(runId: string, tag: string): Promise<void> {
    const message = sh(`echo ${tag}; cat file; sleep 0.5; ${markOf(tag)}`);
    const answer = await callApi('POST', `/agent/runs/${runId}/followups`, { message });
    if (answer === undefined) return;
    if (isAcknowledged(answer)) seen.followups.set(message, runId);
    else refuse(tag, answer);
  }
  async function deliver(n: number): Promise<void> {
    const id = randomUUID();
    const body = JSON.stringify({ action: 'failed', id });
    const signature = `sha256=${createHmac('sha256', webhookSecret).update(body).digest('hex')}`;
    const headers = { 'x-github-delivery': id, 'x-github-event': 'push', 'x-hub-signature-256': signature };
    const { pathname } = new URL(webhooks[n % webhooks.length]?.url ?? '');
    const answer = await ask('POST', pathname, { headers, body });
    if (answer === undefined) return;
    if (answer.status === 202) seen.deliveries.set(id, String(answer.body.delivery_id));
    else refuse(`delivery ${id}`, answer);
  }
  /** Calls `work` at random times, on average `perSecond` times per second (a Poisson process). */
  async function repeat(perSecond: number, work: (n: number) => Promise<void>): Promise<void> {
    for (let n = 0; !isStopping; n += 1) {
      begin(work(n));
      await delay((-Math.log(1 - random()) * 1000) / perSecond);
    }
  }
  const flaky = async () => {
    while (!isStopping) {
      await delay(2_000 + random() * 6_000);
      receiver.behave(random() < 0.5 ? { status: 500 } : 'reset');
      await delay(random() * 2_000);
      receiver.behave({ status: 204 });
    }
  };
  const loops = [repeat(1, createOne), repeat(0.5, deliver), flaky()];
  return {
    seen,
    stop: async () => {
      isStopping = true;
      await Promise.all(loops);
      await Promise.all(open);
    },
  };
}

async function readJson(response: Response): Promise<Record<string, unknown>> {
  const text = await response.text();
  return text.startsWith('{') ? JSON.parse(text) : { text };
}
