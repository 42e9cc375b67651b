/** Examples of the runs and the definitions of factories. */
import { type Example, exampleCreator, exampleIds, exampleTimes, runbookPrompt } from '../wire/example.ts';

/** Returns the files of a factory with this name. */
const filesOf = (name: string) => [
  { path: 'agents/foreman/agent.md', content: '---\nagentType: FOREMAN\n---\n\nKeep the tests green.\n' },
  {
    path: 'factory.yaml',
    content: `schemaVersion: v1alpha1\nname: ${name}\nrepositories: []\nagentDefaults:\n  model: runbook\n`,
  },
];
const files = filesOf('Billing');

const schemaDocument = { title: 'factory.yaml', type: 'object' } as const;

const change = { kind: 'agent', name: 'foreman', action: 'create' } as const;

const commit = '4b825dc642cb6eb9a060e54bf8d69288fbee4904';
const sync = {
  outcome: 'applied',
  dry_run: false,
  commit,
  version: 1,
  changes: [change],
  drift: [],
  notices: [],
  problems: [],
} as const;
const source = {
  repository: 'acme/factories',
  url: 'https://github.com/acme/factories.git',
  branch: 'main',
  folder: 'billing',
  poll_interval_seconds: 300,
  variables: {},
  set_by: exampleCreator,
  set_at: exampleTimes.created,
  applied_commit: commit,
  checked_at: exampleTimes.ended,
  next_check_at: exampleTimes.ended,
  last_sync: { outcome: 'applied', at: exampleTimes.ended, commit },
} as const;

const listedTask = {
  uid: exampleIds.TASK_UID,
  factory_uid: exampleIds.FACTORY_UID,
  conversation_id: exampleIds.CONVERSATION_ID,
  run_id: exampleIds.RUN_ID,
  title: 'Say hello',
  stage: 'TRIAGE',
  created_at: exampleTimes.created,
  updated_at: exampleTimes.created,
  author: exampleCreator,
} as const;
const task = {
  ...listedTask,
  current_run: { run_id: exampleIds.RUN_ID, state: 'INPROGRESS', is_run_type_cancellable: true },
  outputs: [],
} as const;

const applied = { version: 2, dry_run: false, changes: [change], drift: [], notices: [], problems: [] } as const;
const version = {
  version: 1,
  applied_at: exampleTimes.created,
  applied_by: exampleCreator,
  variables: { model: 'runbook' },
  file_bytes: 138,
  is_kept: true,
} as const;

export const factoryExamples = {
  dispatchFactory: {
    body: {
      prompt: runbookPrompt,
      title: 'Say hello',
      ticket_ref: 'linear:BILL-12',
      ticket_url: 'https://tickets.example.com/BILL-12',
    },
    answer: {
      run_id: exampleIds.RUN_ID,
      run_url: `https://runyard.example.com/runs/${exampleIds.RUN_ID}`,
      state: 'QUEUED',
      factory_uid: exampleIds.FACTORY_UID,
      foreman_agent: 'foreman',
      ticket_ref: 'linear:BILL-12',
    },
  },
  listFactoryTasks: {
    query: { stage: ['TRIAGE', 'REVIEW'], limit: 10 },
    answer: { tasks: [listedTask], page_info: { has_next_page: false } },
  },
  createFactoryTask: {
    body: { conversation_id: exampleIds.CONVERSATION_ID, title: 'Say hello' },
    answer: task,
  },
  getFactoryTask: { answer: task },
  updateFactoryTask: { body: { stage: 'REVIEW' }, answer: { ...task, stage: 'REVIEW' } },
  deleteFactoryTask: { answer: { success: true } },
  cancelFactoryTask: {
    answer: { ...task, stage: 'CANCELLED', current_run: { ...task.current_run, state: 'CANCELLED' } },
  },
  getFactoryTaskByConversation: { query: { conversation_id: exampleIds.CONVERSATION_ID }, answer: task },
  getFactoryTaskByRun: { query: { run_id: exampleIds.RUN_ID }, answer: task },
  getFactoryDefinition: {
    answer: {
      version: 1,
      files,
      variables: {},
      applied_at: exampleTimes.created,
      applied_by: exampleCreator,
      drift: [],
      notices: [],
    },
  },
  applyFactoryDefinition: {
    body: { files, dry_run: true },
    answer: { version: 0, dry_run: true, changes: [change], drift: [], notices: [], problems: [] },
  },
  searchFactoryTasks: { query: { q: 'hello' }, answer: { tasks: [listedTask] } },
  findFactoryTask: { query: { reference: 'linear:BILL-12' }, answer: task },
  planFactoryDefinition: {
    body: { files },
    answer: { version: 1, dry_run: true, changes: [change], drift: [], notices: [], problems: [] },
  },
  createFactoryFromFiles: {
    body: { files: filesOf('Shipping') },
    answer: { ...applied, version: 1, factory_uid: exampleIds.FACTORY_UID },
  },
  listDefinitionVersions: { answer: { versions: [version] } },
  getDefinitionVersion: { answer: { ...version, files } },
  compareDefinitionVersions: { query: { from: 0 }, answer: { from: 0, to: 1, changes: [change] } },
  rollBackDefinition: { body: { version: 1 }, answer: applied },
  getFactorySource: { answer: source },
  setFactorySource: {
    body: { repository: 'acme/factories', branch: 'main', folder: 'billing' },
    answer: { source, sync },
  },
  deleteFactorySource: { answer: { success: true } },
  syncFactorySource: { body: { dry_run: true }, answer: { ...sync, dry_run: true, version: 0 } },
  validateFactoryFiles: {
    body: { files },
    answer: {
      valid: true,
      schema_version: 'v1alpha1',
      diagnostics: [],
      deferred_resolutions: [{ path: 'factory.yaml', field: 'agentDefaults.model', kind: 'model' }],
      state_dependent_checks_not_run: ['environments', 'models', 'secrets', 'mcp_servers', 'webhooks', 'skills'],
      validation_scope: { parser: 'checked', state_independent: 'checked', state_dependent: 'not_checked' },
      notices: [],
    },
  },
  listFactoryFileSchemas: {
    answer: {
      current_version: 'v1alpha1',
      versions: [{ schema_version: 'v1alpha1', schema_url: '/api/v1/factory-files/schemas/v1alpha1' }],
    },
  },
  getFactoryFileSchemas: {
    answer: { schema_version: 'v1alpha1', documents: { 'factory.schema.json': schemaDocument } },
  },
  getFactoryFileSchema: { answer: schemaDocument },
} as const satisfies Record<string, Example>;
