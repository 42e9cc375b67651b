/** Test support: a database with subscriptions of a fake receiver, and deliverers, which send due events only when a test calls them. */
import { randomBytes } from 'node:crypto';
import type { CreateEventSubscriptionRequest } from '@runyard/contract/team/event-subscriptions';
import { makeAddressRules } from '@runyard/system/address-rules';
import { systemNames } from '@runyard/system/names/resolver';
import { afterAll, afterEach, expect } from 'vitest';
import { type FakeWebhookReceiver, startFakeWebhookReceiver } from '../../../test/fakes/webhook-receiver.ts';
import { makeVault, type Vault } from '../src/platform/secrets/vault.ts';
import {
  type Deliverer,
  type DelivererLimits,
  defaultLimits,
  openDeliverer,
} from '../src/runs/subscriptions/deliverer.ts';
import { createSubscription, openSecret } from '../src/runs/subscriptions/subscriptions.ts';
import { openTestExecutions, type TestExecutions } from './executions.ts';

/** How long a test waits for events that other processes cause. */
export const patience = { interval: 10, timeout: 60_000 };

export interface DeliveryState {
  readonly id: string;
  readonly event: string;
  readonly status: string;
  readonly attempts: number;
  readonly data: Record<string, unknown>;
  /**
   * Seconds between the end of the last attempt and the time of the next attempt, by the clock of the database. If there was no attempt
   * yet, counted from now.
   */
  readonly waits: number;
  readonly log: readonly { number: number; status: number | null; error: string | null }[];
}

export interface TestSubscriptions extends Omit<TestExecutions, 'close'> {
  readonly receiver: FakeWebhookReceiver;
  readonly vault: Vault;
  /** Creates a subscription of the receiver to all events, and gives the receiver the secret. Returns the id of the subscription. */
  subscribe(overrides?: Partial<CreateEventSubscriptionRequest>, teamId?: string): Promise<string>;
  /** Opens another deliverer, as another service process would do. */
  openDeliverer(limits?: Partial<DelivererLimits>, vault?: Vault): Promise<Deliverer>;
  /** The deliveries, in order. */
  deliveries(): Promise<DeliveryState[]>;
  /** Makes all pending deliveries due now, and ends the leases that deliverers hold on them. */
  passTime(): Promise<void>;
  /** Returns the first delivery; throws if there is none. */
  first(): Promise<DeliveryState>;
  /** Waits until the first delivery has the given number of attempts in its log. */
  untilAttempts(count: number): Promise<DeliveryState>;
  /** Returns all columns of a subscription. */
  subscription(id: string): Promise<Record<string, unknown>>;
}

/**
 * Opens the test support for the tests of a file. After each test, closes the deliverers, deletes the subscriptions and deliveries,
 * and forgets the requests that the receiver got.
 */
export async function openTestSubscriptions(): Promise<TestSubscriptions> {
  const test = await openTestExecutions();
  const { db } = test.database;
  const receiver = await startFakeWebhookReceiver();
  const vault = makeVault(randomBytes(32));
  const opened: Deliverer[] = [];
  afterEach(async () => {
    for (const deliverer of opened.splice(0)) await deliverer.close();
    await db.query('DELETE FROM event_deliveries');
    await db.query('DELETE FROM event_subscriptions');
    receiver.reset();
  });
  afterAll(async () => {
    await receiver.close();
    await test.close();
  });
  const deliveries = () =>
    db.query<DeliveryState & Record<string, unknown>>(
      `SELECT d.id, d.event, d.status, d.attempts, d.data, extract(epoch FROM d.next_attempt_at - coalesce((SELECT max(started_at + make_interval(secs => duration_ms / 1000.0))
           FROM event_delivery_attempts a WHERE a.delivery_id = d.id), clock_timestamp()))::float8 AS waits,
         coalesce((SELECT jsonb_agg(jsonb_build_object('number', number, 'status', http_status, 'error', error) ORDER BY number)
           FROM event_delivery_attempts a WHERE a.delivery_id = d.id), '[]') AS log
       FROM event_deliveries d ORDER BY d.occurred_at, d.id`,
    );
  const first = async () => {
    const [delivery] = await deliveries();
    if (!delivery) throw new Error('there is no delivery');
    return delivery;
  };
  return {
    ...test,
    receiver,
    vault,
    subscribe: async (overrides = {}, teamId = test.teamId) => {
      const request: CreateEventSubscriptionRequest = {
        url: receiver.url,
        events: ['run.created', 'run.started', 'run.blocked', 'run.ended'],
        enabled: true,
        ...overrides,
      };
      const created = await createSubscription(db, vault, teamId, request);
      if (created === 'too_many') throw new Error('too many subscriptions');
      receiver.secrets.push(openSecret(vault, created));
      return created.subscription.id;
    },
    openDeliverer: async (limits = {}, withVault = vault) => {
      const deliverer = await openDeliverer(
        {
          db,
          log: test.deps.log,
          vault: withVault,
          rules: makeAddressRules(['127.0.0.0/8']),
          resolve: systemNames.resolve,
          baseUrl: () => 'http://runyard.test',
          random: () => 0.5,
          channels: { github: () => Promise.reject(new Error('no subscription of these tests is of GitHub')) },
        },
        { ...defaultLimits, stopGraceMs: 0, ...limits },
      );
      opened.push(deliverer);
      return deliverer;
    },
    deliveries,
    first,
    untilAttempts: async (count) => {
      await expect.poll(async () => (await first()).log.length, patience).toBe(count);
      return await first();
    },
    passTime: async () => {
      await db.query(
        `UPDATE event_deliveries SET next_attempt_at = now() - interval '1 second', leased_until = NULL WHERE status = 'pending'`,
      );
    },
    subscription: async (id) => (await db.query('SELECT * FROM event_subscriptions WHERE id = $1', [id]))[0] ?? {},
  };
}
