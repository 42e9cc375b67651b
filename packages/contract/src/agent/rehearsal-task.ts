import type { AgentTask } from './agent-protocol.ts';

/** A minimal task with one command and without a model. Running it executes all code that every run needs. */
export const rehearsalTask: AgentTask = {
  run_id: '00000000-0000-7000-8000-000000000001',
  execution_id: '00000000-0000-7000-8000-000000000002',
  execution_number: 1,
  conversation_id: '00000000-0000-7000-8000-000000000003',
  title: 'Rehearsal',
  prompt: '```sh\ntrue\n```\n',
  agent_config: { model_id: 'runbook' },
  attachments: [],
  harness: { type: 'oz' },
  repositories: [],
};
