/** The example of docs/factory-files.md. */
export const example: readonly { readonly path: string; readonly content: string }[] = [
  {
    path: 'factory.yaml',
    content: `schemaVersion: v1alpha1
name: \${{ variables.name }}
repositories:
  - owner: acme
    name: payments-service
agentDefaults:
  model: \${{ variables.model }}
  environment: node
`,
  },
  {
    path: 'variables.yaml',
    content: `variables:
  name:
    default: payments
  model:
    default: auto
    description: Model of all agents
`,
  },
  {
    path: 'environments/node.yaml',
    content: `setup_commands: [npm ci]
github_repos:
  - owner: acme
    repo: payments-service
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
      webhooks: [ci]
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
