/** An example of each operation; a route without one does not compile. */
import type { RouteName } from '../routes.ts';
import { accessExamples } from './access.ts';
import { automationExamples } from './automations.ts';
import { budgetExamples } from './budgets.ts';
import { codeHostExamples } from './code-hosts.ts';
import { eventSubscriptionExamples } from './event-subscriptions.ts';
import type { Example } from './example.ts';
import { factoryExamples } from './factories.ts';
import { harnessExamples } from './harness.ts';
import { mcpServerExamples } from './mcp-servers.ts';
import { resourceExamples } from './resources.ts';
import { runExamples } from './runs.ts';
import { scheduleExamples } from './schedules.ts';
import { webhookExamples } from './webhooks.ts';

export const examples: Readonly<Record<RouteName, Example>> = {
  ...runExamples,
  ...resourceExamples,
  ...scheduleExamples,
  ...codeHostExamples,
  ...accessExamples,
  ...eventSubscriptionExamples,
  ...mcpServerExamples,
  ...budgetExamples,
  ...webhookExamples,
  ...factoryExamples,
  ...automationExamples,
  ...harnessExamples,
};
