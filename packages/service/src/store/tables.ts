/**
 * Generated from the migrations by `node packages/service/src/store/generate-tables.ts`. Values: see `values.ts`.
 */
import type { ColumnType, Generated, GeneratedAlways } from 'kysely';

export interface ApiKeysTable {
  id: string;
  hash: Buffer;
  kind: 'personal' | 'agent';
  name: string;
  team_id: string;
  user_id: string | null;
  agent_uid: string | null;
  is_operator: Generated<boolean>;
  prefix: string;
  last_four: string;
  created_at: ColumnType<string, string | Date | undefined, string | Date>;
  expires_at: ColumnType<string | null, string | Date | null | undefined, string | Date | null>;
  last_used_at: ColumnType<string | null, string | Date | null | undefined, string | Date | null>;
}

export interface ArtifactsTable {
  id: string;
  team_id: string;
  run_id: string;
  execution_id: string;
  conversation_id: string;
  artifact_type: 'PLAN' | 'PULL_REQUEST' | 'SCREENSHOT' | 'FILE' | 'EXTERNAL_REFERENCE';
  data: ColumnType<unknown, string, string>;
  is_ready: boolean;
  is_public: Generated<boolean>;
  blob_key: string | null;
  size_bytes: number | null;
  sha256: Buffer | null;
  canonical_url: string | null;
  created_at: ColumnType<string, string | Date | undefined, string | Date>;
}

export interface AttachmentsTable {
  id: string;
  run_id: string;
  position: number;
  file_name: string;
  mime_type: string;
  size_bytes: number;
  sha256: Buffer;
  blob_key: string;
  followup_id: string | null;
}

export interface ConversationEventsTable {
  run_id: string;
  seq: number;
  execution_id: string;
  event: ColumnType<unknown, string, string>;
  from_seq: number | null;
}

export interface EnvironmentsTable {
  uid: string;
  team_id: string;
  config: ColumnType<unknown, string, string>;
  setup_failed: Generated<boolean>;
  created_at: ColumnType<string, string | Date | undefined, string | Date>;
  updated_at: ColumnType<string, string | Date | undefined, string | Date>;
}

export interface EventDeliveriesTable {
  id: Generated<string>;
  subscription_id: string;
  event: string;
  data: ColumnType<unknown, string, string>;
  occurred_at: ColumnType<string, string | Date | undefined, string | Date>;
  status: Generated<'pending' | 'delivered' | 'failed'>;
  attempts: Generated<number>;
  round_attempts: Generated<number>;
  next_attempt_at: ColumnType<string, string | Date | undefined, string | Date>;
  leased_until: ColumnType<string | null, string | Date | null | undefined, string | Date | null>;
  retry_until: ColumnType<string | null, string | Date | null | undefined, string | Date | null>;
  delivered_at: ColumnType<string | null, string | Date | null | undefined, string | Date | null>;
}

export interface EventDeliveryAttemptsTable {
  delivery_id: string;
  number: number;
  started_at: ColumnType<string, string | Date, string | Date>;
  duration_ms: number;
  http_status: number | null;
  error: string | null;
}

export interface EventMergesTable {
  is_only: Generated<boolean>;
  ended_at: ColumnType<string, string | Date, string | Date>;
  run_id: string;
}

export interface EventStreamEpochTable {
  is_only: Generated<boolean>;
  epoch: string;
  identity: string;
}

export interface EventStreamMarksTable {
  marked_at: ColumnType<string, string | Date | undefined, string | Date>;
  xact: string;
}

export interface EventSubscriptionsTable {
  id: string;
  team_id: string;
  name: string | null;
  url: string;
  events: string[];
  filter_source: string | null;
  filter_name: string | null;
  filter_metadata: ColumnType<unknown, string | undefined, string>;
  vault_key_id: string;
  sealed_secret: Buffer;
  previous_sealed_secret: Buffer | null;
  previous_secret_until: ColumnType<string | null, string | Date | null | undefined, string | Date | null>;
  enabled: Generated<boolean>;
  disabled_reason: string | null;
  disabled_at: ColumnType<string | null, string | Date | null | undefined, string | Date | null>;
  failing_since: ColumnType<string | null, string | Date | null | undefined, string | Date | null>;
  created_at: ColumnType<string, string | Date | undefined, string | Date>;
  updated_at: ColumnType<string, string | Date | undefined, string | Date>;
}

export interface ExecutionsTable {
  id: string;
  run_id: string;
  team_id: string;
  number: number;
  phase: 'queued' | 'assigned' | 'claimed' | 'running' | 'idle' | 'stopping' | 'ended';
  attempt: Generated<number>;
  pool: string;
  queued_at: ColumnType<string, string | Date | undefined, string | Date>;
  available_at: ColumnType<string, string | Date | undefined, string | Date>;
  assigned_at: ColumnType<string | null, string | Date | null | undefined, string | Date | null>;
  claim_deadline: ColumnType<string | null, string | Date | null | undefined, string | Date | null>;
  connection_id: string | null;
  worker_id: string | null;
  worker_instance: string | null;
  token_hash: Buffer | null;
  claimed_at: ColumnType<string | null, string | Date | null | undefined, string | Date | null>;
  lease_until: ColumnType<string | null, string | Date | null | undefined, string | Date | null>;
  agent_seen_at: ColumnType<string | null, string | Date | null | undefined, string | Date | null>;
  sandbox: ColumnType<unknown, string | null | undefined, string | null>;
  started_at: ColumnType<string | null, string | Date | null | undefined, string | Date | null>;
  deadline_at: ColumnType<string | null, string | Date | null | undefined, string | Date | null>;
  finished_at: ColumnType<string | null, string | Date | null | undefined, string | Date | null>;
  stop_reason: 'finished' | 'ordered' | null;
  stop_deadline: ColumnType<string | null, string | Date | null | undefined, string | Date | null>;
  ended_at: ColumnType<string | null, string | Date | null | undefined, string | Date | null>;
  exit: ColumnType<unknown, string | null | undefined, string | null>;
  last_agent_seq: Generated<number>;
  redaction_tails: ColumnType<unknown, string | undefined, string>;
  transcript_bytes: Generated<number>;
  transcript_blob: string | null;
  idle_until: ColumnType<string | null, string | Date | null | undefined, string | Date | null>;
  idle_seconds: Generated<number>;
  finished_turns: Generated<number>;
  interrupted_turn: number | null;
  continues: number | null;
  memory_blob: string | null;
  memory_turn: number | null;
  wanted_at: ColumnType<string, string | Date | undefined, string | Date>;
  depth: Generated<number>;
  awaiting_until: ColumnType<string | null, string | Date | null | undefined, string | Date | null>;
  workspace_turn: number | null;
  workspace_blob: string | null;
  workspace_bytes: number | null;
  workspace_sha256: Buffer | null;
  keeping_until: ColumnType<string | null, string | Date | null | undefined, string | Date | null>;
  workspace_session: string | null;
  memory_request: string | null;
  debug_request: ColumnType<unknown, string | null | undefined, string | null>;
}

export interface FollowupsTable {
  id: string;
  run_id: string;
  position: GeneratedAlways<number>;
  message: string;
  mode: 'normal' | 'plan' | 'orchestrate' | null;
  created_by_kind: 'user' | 'service_account' | 'run';
  created_by_uid: string;
  created_at: ColumnType<string, string | Date | undefined, string | Date>;
  execution_id: string | null;
  taken_at: ColumnType<string | null, string | Date | null | undefined, string | Date | null>;
  decision: 'approve' | 'deny' | null;
  answers: string | null;
  request: ColumnType<unknown, string | null | undefined, string | null>;
  is_debug: Generated<boolean>;
}

export interface IdempotencyKeysTable {
  team_id: string;
  principal: string;
  key: string;
  request_hash: Buffer;
  status: number;
  response: ColumnType<unknown, string, string>;
  created_at: ColumnType<string, string | Date | undefined, string | Date>;
}

export interface ModelRequestsTable {
  id: string;
  run_id: string;
  execution_id: string;
  model_id: string;
  provider: string;
  status: number;
  input_tokens: number;
  output_tokens: number;
  cache_read_tokens: number;
  cache_write_tokens: number;
  input_cost_usd: ColumnType<string | null, string | number | null | undefined, string | number | null>;
  output_cost_usd: ColumnType<string | null, string | number | null | undefined, string | number | null>;
  cache_read_cost_usd: ColumnType<string | null, string | number | null | undefined, string | number | null>;
  cache_write_cost_usd: ColumnType<string | null, string | number | null | undefined, string | number | null>;
  duration_ms: number;
  created_at: ColumnType<string, string | Date | undefined, string | Date>;
}

export interface RunEventsTable {
  run_id: string;
  seq: number;
  event_uuid: Generated<string>;
  event_type: string | null;
  state: string | null;
  occurred_at: ColumnType<string, string | Date | undefined, string | Date>;
  execution_number: number | null;
  payload: ColumnType<unknown, string | null | undefined, string | null>;
  xact: Generated<string>;
}

export interface RunFacetsTable {
  run_id: string;
  facet: string;
  team_id: string;
  updated_hour: ColumnType<string, string | Date, string | Date>;
}

export interface RunSearchTable {
  run_id: string;
  team_id: string;
  updated_hour: ColumnType<string, string | Date, string | Date>;
  parts: string;
}

export interface RunSearchWaitingTable {
  id: GeneratedAlways<number>;
  run_ids: string[];
}

export interface RunsTable {
  id: string;
  team_id: string;
  state: 'QUEUED' | 'PENDING' | 'CLAIMED' | 'INPROGRESS' | 'SUCCEEDED' | 'FAILED' | 'BLOCKED' | 'ERROR' | 'CANCELLED';
  title: string;
  prompt: string;
  config: ColumnType<unknown, string | undefined, string>;
  name: string | null;
  model_id: string;
  harness: string;
  environment_id: string | null;
  skill_spec: string | null;
  worker_host: string | null;
  source: string;
  execution_location: Generated<'LOCAL' | 'REMOTE'>;
  creator_kind: 'user' | 'service_account';
  creator_uid: string;
  executor_kind: 'user' | 'service_account';
  executor_uid: string;
  mode: 'normal' | 'plan' | 'orchestrate' | null;
  parent_run_id: string | null;
  ancestor_ids: Generated<string[]>;
  schedule_id: string | null;
  metadata: ColumnType<unknown, string | undefined, string>;
  conversation_id: string;
  current_execution_id: string;
  assignment_id: string | null;
  status_message: string | null;
  error_code: string | null;
  retryable: boolean | null;
  event_seq: Generated<number>;
  created_at: ColumnType<string, string | Date | undefined, string | Date>;
  updated_at: ColumnType<string, string | Date | undefined, string | Date>;
  started_at: ColumnType<string | null, string | Date | null | undefined, string | Date | null>;
  ended_at: ColumnType<string | null, string | Date | null | undefined, string | Date | null>;
  detail_deleted_at: ColumnType<string | null, string | Date | null | undefined, string | Date | null>;
  cascade_at: ColumnType<string | null, string | Date | null | undefined, string | Date | null>;
  events_kept_after: Generated<number>;
  open_request: ColumnType<unknown, string | null | undefined, string | null>;
}

export interface ServerSecretsTable {
  name: string;
  value: Buffer;
}

export interface ServiceInstancesTable {
  id: string;
  started_at: ColumnType<string, string | Date | undefined, string | Date>;
  seen_at: ColumnType<string, string | Date | undefined, string | Date>;
}

export interface SnapshotFilesTable {
  id: string;
  snapshot_id: string;
  position: number;
  filename: string;
  mime_type: string | null;
  size_bytes: number;
  sha256: Buffer | null;
  blob_key: string | null;
}

export interface SnapshotsTable {
  id: string;
  run_id: string;
  execution_id: string;
  turn: number;
  is_ready: boolean;
  created_at: ColumnType<string, string | Date | undefined, string | Date>;
}

export interface SweepsTable {
  name: string;
  next_at: ColumnType<string, string | Date, string | Date>;
  claimed_by: string | null;
  claimed_until: ColumnType<string | null, string | Date | null | undefined, string | Date | null>;
  finished_at: ColumnType<string | null, string | Date | null | undefined, string | Date | null>;
  result: ColumnType<unknown, string | null | undefined, string | null>;
}

export interface TeamMembersTable {
  team_id: string;
  user_id: string;
  role: 'admin' | 'member';
}

export interface TeamsTable {
  id: string;
  uid: string;
  number: GeneratedAlways<number>;
  name: string;
  max_concurrent_executions: Generated<number>;
  max_instance_runtime_seconds: Generated<number>;
  max_setup_seconds: Generated<number>;
  queue_ttl_hours: Generated<number>;
  served_at: ColumnType<string, string | Date | undefined, string | Date>;
  served_count: Generated<number>;
  created_at: ColumnType<string, string | Date | undefined, string | Date>;
  metadata_filters_enabled: Generated<boolean>;
}

export interface TranscriptChunksTable {
  execution_id: string;
  agent_seq: number;
  lines: string;
}

export interface UsersTable {
  id: string;
  uid: string;
  number: GeneratedAlways<number>;
  display_name: string;
  email: string | null;
  created_at: ColumnType<string, string | Date | undefined, string | Date>;
}

export interface WorkerConnectionsTable {
  id: string;
  service_instance_id: string;
  worker_id: string;
  instance_id: string | null;
  team_id: string | null;
  slots: number | null;
  draining: Generated<boolean>;
  sandbox: ColumnType<unknown, string | null | undefined, string | null>;
  connected_at: ColumnType<string, string | Date | undefined, string | Date>;
  last_seen_at: ColumnType<string, string | Date | undefined, string | Date>;
}

/** Every table, for Kysely. */
export interface Tables {
  api_keys: ApiKeysTable;
  artifacts: ArtifactsTable;
  attachments: AttachmentsTable;
  conversation_events: ConversationEventsTable;
  environments: EnvironmentsTable;
  event_deliveries: EventDeliveriesTable;
  event_delivery_attempts: EventDeliveryAttemptsTable;
  event_merges: EventMergesTable;
  event_stream_epoch: EventStreamEpochTable;
  event_stream_marks: EventStreamMarksTable;
  event_subscriptions: EventSubscriptionsTable;
  executions: ExecutionsTable;
  followups: FollowupsTable;
  idempotency_keys: IdempotencyKeysTable;
  model_requests: ModelRequestsTable;
  run_events: RunEventsTable;
  run_facets: RunFacetsTable;
  run_search: RunSearchTable;
  run_search_waiting: RunSearchWaitingTable;
  runs: RunsTable;
  server_secrets: ServerSecretsTable;
  service_instances: ServiceInstancesTable;
  snapshot_files: SnapshotFilesTable;
  snapshots: SnapshotsTable;
  sweeps: SweepsTable;
  team_members: TeamMembersTable;
  teams: TeamsTable;
  transcript_chunks: TranscriptChunksTable;
  users: UsersTable;
  worker_connections: WorkerConnectionsTable;
}
