import type { AgentTask } from './agent-protocol.ts';

/** The smallest task that runs all code that every run needs. It has one command and no model. */
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
