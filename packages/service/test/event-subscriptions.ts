/** Test support: creates and reads event subscriptions through the API, as an administrator. */
import {
  EventSubscription,
  EventSubscriptionWithSecret,
  ListEventDeliveriesResponse,
} from '@runyard/contract/team/event-subscriptions';
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
  const create = async (more: object = {}): Promise<EventSubscriptionWithSecret> =>
    EventSubscriptionWithSecret.parse(
      await service.ok('POST', base, { body: { url, events: ['run.created'], ...more } }),
    );
  const read = async (id: string) => EventSubscription.parse(await service.ok('GET', `${base}/${id}`));
  const deliveriesOf = async (id: string, query = '') =>
    ListEventDeliveriesResponse.parse(await service.ok('GET', `${base}/${id}/deliveries${query}`));

  return { create, read, deliveriesOf };
}
