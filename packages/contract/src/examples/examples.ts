/** An example of each operation; a route without one does not compile. */
import type { RouteName } from '../routes.ts';
import { accessExamples } from './access.ts';
import { eventSubscriptionExamples } from './event-subscriptions.ts';
import type { Example } from './example.ts';
import { harnessExamples } from './harness.ts';
import { resourceExamples } from './resources.ts';
import { runExamples } from './runs.ts';

export const examples: Readonly<Record<RouteName, Example>> = {
  ...runExamples,
  ...resourceExamples,
  ...accessExamples,
  ...eventSubscriptionExamples,
  ...harnessExamples,
};
