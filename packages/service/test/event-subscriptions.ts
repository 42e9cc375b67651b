/** Test support: creates and reads event subscriptions through the API, as an administrator. */
import {
  EventSubscription,
  EventSubscriptionWithSecret,
  ListEventDeliveriesResponse,
} from '@runyard/contract/team/event-subscriptions';
import { expect } from 'vitest';
import type { TestService } from './service.ts';

/** Path of the routes. */
export const base = '/event-subscriptions';
/** The receiver of the subscriptions. */
export const url = 'https://hooks.example.com/runs';

export interface TestEventSubscriptions {
  create(more?: object): Promise<EventSubscriptionWithSecret>;
  read(id: string): Promise<EventSubscription>;
  /** `query` begins with `?`. */
  deliveriesOf(id: string, query?: string): Promise<ListEventDeliveriesResponse>;
}

/** Returns functions that send requests as the administrator of the service. */
export function testEventSubscriptions(service: TestService): TestEventSubscriptions {
  const create = async (more: object = {}): Promise<EventSubscriptionWithSecret> => {
    const answer = await service.request('POST', base, { body: { url, events: ['run.created'], ...more } });
    expect(answer.status, answer.text).toBe(201);
    return EventSubscriptionWithSecret.parse(answer.body);
  };
  const read = async (id: string) => EventSubscription.parse((await service.request('GET', `${base}/${id}`)).body);
  const deliveriesOf = async (id: string, query = '') => {
    const answer = await service.request('GET', `${base}/${id}/deliveries${query}`);
    expect(answer.status, answer.text).toBe(200);
    return ListEventDeliveriesResponse.parse(answer.body);
  };

  return { create, read, deliveriesOf };
}
