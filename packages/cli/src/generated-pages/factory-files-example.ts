/** The example of docs/factory-files.md. */
export const example: readonly { readonly path: string; readonly content: string }[] = [
  {
    path: 'factory.yaml',
    content: `schemaVersion: v1alpha1
name: payments
repositories:
  - owner: acme
    name: payments-service
agentDefaults:
  model: auto
`,
  },
  {
    path: 'agents/foreman/agent.md',
    content: `---
description: Routes work
agentType: FOREMAN
---

Decide who works on the request, and report the result.
`,
  },
  {
    path: 'webhooks/ci.yaml',
    content: `secretName: CI_WEBHOOK_SECRET
deliveryIdHeader: X-CI-Run-Id
`,
  },
  {
    path: 'automations/failed-builds/automation.md',
    content: `---
agent: foreman
triggers:
  - provider: webhook
    event: received
    filter:
      webhook_ids: [abcdefghij0123456789AB]
      payload:
        status: [failed]
        branch:
          not_in: [sandbox]
  - provider: github
    event: workflow_run_completed
    filter:
      repos: [acme/payments-service]
      branches: [main]
      conclusions: [failure]
---

Find the cause of the failed build, and open a pull request with a fix.
`,
  },
];
