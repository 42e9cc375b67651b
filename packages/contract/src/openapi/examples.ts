/** An example of each operation. The code does not compile if a route has no example. */

import { harnessExamples } from '../agent/examples.ts';
import { automationExamples } from '../automations/examples.ts';
import { teamTriggerExamples } from '../automations/team-examples.ts';
import { factoryExamples } from '../factories/examples.ts';
import { inboxExamples } from '../inbox/examples.ts';
import type { RouteName } from '../routes.ts';
import { runExamples } from '../runs/examples.ts';
import { resourceExamples } from '../runs/resource-examples.ts';
import { scheduleExamples } from '../schedules/examples.ts';
import { budgetExamples } from '../team/budget-examples.ts';
import { codeHostExamples } from '../team/code-host-examples.ts';
import { eventSubscriptionExamples } from '../team/event-subscription-examples.ts';
import { accessExamples } from '../team/examples.ts';
import { githubExamples } from '../team/github-examples.ts';
import { mcpServerExamples } from '../team/mcp-server-examples.ts';
import { modelProviderExamples } from '../team/model-provider-examples.ts';
import { passkeyExamples } from '../team/passkey-examples.ts';
import { webhookExamples } from '../webhooks/examples.ts';
import type { Example } from '../wire/example.ts';

export const examples: Readonly<Record<RouteName, Example>> = {
  ...runExamples,
  ...resourceExamples,
  ...inboxExamples,
  ...scheduleExamples,
  ...codeHostExamples,
  ...githubExamples,
  ...accessExamples,
  ...passkeyExamples,
  ...eventSubscriptionExamples,
  ...mcpServerExamples,
  ...budgetExamples,
  ...modelProviderExamples,
  ...webhookExamples,
  ...factoryExamples,
  ...automationExamples,
  ...teamTriggerExamples,
  ...harnessExamples,
};
