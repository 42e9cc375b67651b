/** Defines which room (folder) of the service writes each table, and which other rooms may read this table. */

/** The rooms that write and read one table. */
export interface TableRule {
  /** The room that inserts, updates and deletes the rows. */
  readonly owner: string;
  /** For some columns, the rooms that may update the column. If a column is listed, the owner needs to be in its list too. */
  readonly columns?: Readonly<Record<string, readonly string[]>>;
  /** Another room that may delete rows, but not insert or update them. */
  readonly alsoDeletedBy?: string;
  /** Other rooms that read rows, sorted by floor from the top to the bottom. No reader is on a floor below the floor of the owner. */
  readonly readers?: readonly string[];
}

/** Columns of `runs` that a state change of a run sets. They are set in the statement that also changes the row of the execution. */
const stateColumns = [
  'state',
  'current_execution_id',
  'assignment_id',
  'in_sandbox',
  'status_message',
  'error_code',
  'error_detail',
  'retryable',
  'open_request',
  'started_at',
  'ended_at',
  'cascade_at',
  'event_seq',
];
/**
 * Columns of `runs` with counters. The room `runs` also updates them, because it resets the counters when it deletes the details of an
 * old run.
 */
const counterColumns = [
  'events_kept_after',
  'event_bytes',
  'transcript_bytes',
  'dropped_events',
  'dropped_lines',
  'updated_at',
];

const rooms = (columns: readonly string[], ...names: string[]) =>
  Object.fromEntries(columns.map((column) => [column, names]));

/** The rule of every table of the service. A test compares the names of the tables with a migrated database. */
export const tableRules: Readonly<Record<string, TableRule>> = {
  acceptances: { owner: 'access', readers: ['acceptances'] },
  agent_identities: { owner: 'access', readers: ['stored-secrets'] },
  api_keys: { owner: 'access', readers: ['executions', 'stored-secrets'] },
  // When `executions` takes an assignment back, the same statement deletes the artifacts of the assignment. `executions` cannot call
  // `files` for this, because `files` imports `executions`.
  artifacts: { owner: 'files', readers: ['factory-runs', 'repositories', 'inbox'], alsoDeletedBy: 'executions' },
  attachments: { owner: 'files', readers: ['runs'] },
  audit_days: { owner: 'access' },
  audit_entries: { owner: 'access' },
  automations: { owner: 'automations', readers: ['starts', 'github', 'factories'] },
  base_commits: { owner: 'executions', readers: ['runs'] },
  client_answers: { owner: 'idempotency' },
  code_host_credentials: { owner: 'code-hosts', readers: ['acceptances'] },
  // Only database triggers write this table. They are on the tables of environments, schedules and other content whose revisions it
  // stores.
  content_revisions: { owner: 'access', readers: ['definitions', 'acceptances', 'environments', 'runs'] },
  conversation_acceptances: { owner: 'executions' },
  conversation_titles: { owner: 'conversations' },
  conversation_events: { owner: 'conversations', readers: ['live', 'runs', 'files', 'executions'] },
  // Only a database trigger on `runs` writes this table.
  deleted_turns: { owner: 'executions' },
  environment_guests: { owner: 'environments' },
  // Only the database deletes its rows, with their runs.
  fresh_checks: { owner: 'executions', readers: ['files'] },
  forked_runs: { owner: 'conversations', readers: ['runs', 'harness-support', 'files', 'retention'] },
  ended_members: { owner: 'access' },
  environment_invitations: { owner: 'environments' },
  environment_visitors: { owner: 'environments' },
  environments: { owner: 'environments', readers: ['harness-support', 'runs', 'executions'] },
  event_deliveries: { owner: 'subscriptions' },
  event_delivery_attempts: { owner: 'subscriptions' },
  event_merges: { owner: 'conversations' },
  event_stream_epoch: { owner: 'live' },
  event_stream_marks: { owner: 'live' },
  event_subscriptions: { owner: 'subscriptions' },
  executions: {
    owner: 'executions',
    readers: ['workers', 'live', 'factory-runs', 'harness-support', 'runs', 'files', 'conversations'],
  },
  factories: { owner: 'factories', readers: ['starts', 'definitions'] },
  factory_agents: { owner: 'factories', readers: ['starts'] },
  factory_definition_versions: { owner: 'definitions' },
  factory_definitions: { owner: 'definitions' },
  factory_tasks: { owner: 'factory-runs' },
  factory_sources: { owner: 'definitions' },
  // When a run is retried or continued, `executions` also updates follow-ups: those that the ended execution took and did not answer
  // become available again.
  followups: {
    owner: 'runs',
    readers: ['harness-support', 'files', 'executions'],
    columns: rooms(['execution_id', 'taken_at'], 'runs', 'executions'),
  },
  github_apps: { owner: 'github' },
  github_comments: { owner: 'github' },
  github_installations: { owner: 'github' },
  github_people: { owner: 'github' },
  github_places: { owner: 'github' },
  github_words: { owner: 'github' },
  gone_workers: { owner: 'executions' },
  idempotency_keys: { owner: 'idempotency' },
  inbox_items: { owner: 'inbox' },
  inbox_recipients: { owner: 'inbox' },
  notify_rules: { owner: 'inbox' },
  failed_reruns: { owner: 'runs' },
  uncounted_failures: { owner: 'inbox' },
  installation: { owner: 'installation' },
  held_actions: { owner: 'executions' },
  mcp_servers: { owner: 'mcp' },
  model_providers: { owner: 'models' },
  model_outages: { owner: 'models' },
  model_requests: { owner: 'usage' },
  open_model_requests: { owner: 'usage' },
  run_events: { owner: 'executions', readers: ['live', 'harness-support', 'runs'] },
  prepared_attachments: { owner: 'files' },
  personal_clones: { owner: 'executions' },
  pull_request_events: { owner: 'files', readers: ['history'] },
  pull_requests: { owner: 'files' },
  pushed_branches: { owner: 'repositories' },
  run_search: { owner: 'runs' },
  run_search_waiting: { owner: 'runs' },
  run_spend: { owner: 'usage' },
  runs: {
    owner: 'runs',
    readers: [
      'workers',
      'live',
      'retention',
      'factory-runs',
      'history',
      'harness-support',
      'files',
      'executions',
      'conversations',
      'inbox',
      'subscriptions',
      'github',
      'repositories',
    ],
    columns: { ...rooms(stateColumns, 'executions'), ...rooms(counterColumns, 'executions', 'runs') },
  },
  run_changes: { owner: 'files' },
  run_results: { owner: 'results', readers: ['runs', 'subscriptions'] },
  run_requests: { owner: 'runs', readers: ['harness-support', 'files', 'executions', 'inbox', 'results', 'github'] },
  run_retries: { owner: 'executions', readers: ['runs'] },
  run_skills: { owner: 'skills' },
  schedules: { owner: 'schedules', readers: ['starts', 'history'] },
  run_secrets: { owner: 'stored-secrets' },
  passkey_uses: { owner: 'access' },
  passkeys: { owner: 'access' },
  saved_views: { owner: 'saved-views' },
  server_secrets: { owner: 'secrets' },
  service_instances: { owner: 'executions' },
  snapshot_files: { owner: 'files' },
  snapshots: { owner: 'files', alsoDeletedBy: 'executions' },
  sign_in_codes: { owner: 'access' },
  sign_on_identities: { owner: 'access' },
  sign_on_uses: { owner: 'access' },
  starts: { owner: 'history', readers: ['starts', 'github', 'webhooks'] },
  // Only database triggers write this table. They are on the tables of runs and of their files.
  storage_changes: { owner: 'files' },
  stored_secrets: { owner: 'stored-secrets', readers: ['webhooks', 'acceptances'] },
  sweeps: { owner: 'retention' },
  team_budgets: { owner: 'usage' },
  team_invitations: { owner: 'access' },
  team_members: { owner: 'access', readers: ['inbox', 'acceptances', 'stored-secrets'] },
  team_models: { owner: 'models' },
  team_storage: { owner: 'files' },
  team_spend: { owner: 'usage', readers: ['runs'] },
  // When the queue in `executions` assigns runs, it locks the row of the team to keep the team's limit, and stores the number and the
  // time of the assignments in this row.
  teams: {
    owner: 'access',
    readers: ['schedules', 'runs', 'executions', 'harness-support', 'environments', 'usage'],
    columns: rooms(['served_at', 'served_count'], 'executions'),
  },
  transcript_chunks: { owner: 'conversations' },
  upload_leases: { owner: 'uploads', readers: ['files'] },
  usage_days: { owner: 'usage' },
  users: {
    owner: 'access',
    readers: ['inbox', 'acceptances', 'code-hosts', 'environments', 'saved-views', 'stored-secrets'],
  },
  webhook_deliveries: { owner: 'webhooks', readers: ['live', 'github'] },
  webhooks: { owner: 'webhooks', readers: ['live', 'factories'] },
  worker_connections: { owner: 'executions', readers: ['workers', 'runs'] },
  worker_pool_connectors: { owner: 'access' },
  worker_pools: { owner: 'access' },
  worker_instances: { owner: 'workers' },
};

/**
 * Files with a statement that reads a table of a higher floor, and the reason. Keep this list at three entries at most: usually such a
 * statement belongs in the room of the table.
 */
export const readsOfHigherFloors: readonly {
  readonly file: string;
  readonly table: string;
  readonly reason: string;
}[] = [
  {
    file: 'packages/service/src/runs/inbox/write.ts',
    table: 'factory_tasks',
    reason:
      'The statement that ends a turn asks for the review of a plan if the task of the conversation is in the stage SPEC.',
  },
  {
    file: 'packages/service/src/team/usage/budget/read-budgets.ts',
    table: 'run_requests',
    reason:
      'Each request to a model reads the limits of the runs above it, together with those of the team in one statement; a row of run_spend needs its run.',
  },
  {
    file: 'packages/service/src/team/usage/record-usage.ts',
    table: 'runs',
    reason:
      'The statement that accounts for a request locks its run against deletion; a row of run_spend needs its run.',
  },
];

/** Files that insert the name of a table into a statement at run time. The checks cannot know which table these statements write. */
export const filesNamingTablesAtRunTime = [
  // Deletes rows by the rules that the owners of the tables register.
  'packages/service/src/edges/retention/sweep.ts',
  // Encrypts the texts again in the columns that the owners of the tables define.
  'packages/service/src/platform/secrets/seal-again.ts',
];
