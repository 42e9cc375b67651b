/** Examples of the runs and the definitions of factories. */
import { type Example, exampleCreator, exampleIds, exampleTimes, runbookPrompt } from './example.ts';

const files = [
  { path: 'agents/foreman/agent.md', content: '---\nagentType: FOREMAN\n---\n\nKeep the tests green.\n' },
  {
    path: 'factory.yaml',
    content: 'schemaVersion: v1alpha1\nname: Billing\nrepositories: []\nagentDefaults:\n  model: runbook\n',
  },
];

const change = { kind: 'agent', name: 'foreman', action: 'create' } as const;

export const factoryExamples = {
  dispatchFactory: {
    body: {
      prompt: runbookPrompt,
      title: 'Say hello',
      ticket_ref: 'BILL-12',
      ticket_url: 'https://tickets.example.com/BILL-12',
    },
    answer: {
      run_id: exampleIds.RUN_ID,
      run_url: `https://runyard.example.com/runs/${exampleIds.RUN_ID}`,
      state: 'QUEUED',
    },
  },
  getFactoryDefinition: {
    answer: { version: 1, files, applied_at: exampleTimes.created, applied_by: exampleCreator, drift: [] },
  },
  applyFactoryDefinition: {
    body: { files, dry_run: true },
    answer: { version: 0, dry_run: true, changes: [change], drift: [], notices: [] },
  },
  getFactoryFileSchemas: {
    answer: {
      factory: { type: 'object' },
      agent: { type: 'object' },
      automation: { type: 'object' },
      webhook: { type: 'object' },
      runner: { type: 'object' },
    },
  },
} as const satisfies Record<string, Example>;
