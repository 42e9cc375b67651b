/** Tables of values that the schemas of the contract accept and refuse. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { AgentTask } from '../agent/agent-protocol.ts';
import { TestFilterRequest } from '../automations/automations.ts';
import { CreateEnvironmentRequest } from '../environments/environments.ts';
import { Repository } from '../environments/repositories.ts';
import { DispatchRequest } from '../factories/factory-definitions.ts';
import { ApprovalPolicy } from '../runs/approvals.ts';
import { ChildRunRequest, ListChildRunsQuery, RunMessage } from '../runs/child-runs.ts';
import { AmbientAgentConfig, HarnessConfig, MCPServerConfig, RequestedAgentConfig } from '../runs/config.ts';
import { UploadSnapshot } from '../runs/handoff.ts';
import { ListRunsQuery } from '../runs/run-list.ts';
import {
  AttachmentInput,
  RerunRequest,
  RunAgentRequest,
  RunFollowupRequest,
  RunMetadata,
} from '../runs/run-request.ts';
import { RunnerConfig } from '../runs/runner.ts';
import { CreateScheduledAgentRequest } from '../schedules/schedules.ts';
import { PutSecretRequest } from '../secrets/secrets.ts';
import {
  CreateEventSubscriptionRequest,
  ListDeliveriesQuery,
  SubscriptionFilter,
} from '../team/event-subscriptions.ts';
import { CreateKeyRequest } from '../team/keys.ts';
import { CreateMcpServerRequest } from '../team/mcp-servers.ts';
import { DryRunRequest, SimulateDeliveryRequest } from '../webhooks/simulations.ts';
import { HmacSignature } from '../webhooks/webhook-rules.ts';
import { IdempotencyKey, NonBlank, Text, TurnNumber, Uid22 } from './primitives.ts';
import { QueryTime } from './query-time.ts';

interface Table {
  readonly schema: z.ZodType;
  readonly accepted: readonly unknown[];
  readonly refused: readonly unknown[];
  /**
   * Values that the service refuses although they match the JSON Schema. JSON Schema cannot exclude U+0000 or count bytes or different
   * characters.
   */
  readonly beyondJsonSchema?: readonly unknown[];
}

const uid = 'aB3'.padEnd(22, '0');
const pairs = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, 'v']));
const file = { file_name: 'a.png', mime_type: 'image/png', data: 'YQ==' };
const event = { url: 'https://example.com/', events: ['run.ended'] };
const upload = { filename: 'a.patch', size_bytes: 0 };
const id = '0199a000-0000-7000-8000-000000000000';
const schedule = { name: 'S', prompt: 'a', cron_schedule: '* * * * *' };
const secret = { value: 'a-b-c-d-', scope: 'team' };

const tables: Readonly<Record<string, Table>> = {
  Text: { schema: Text, accepted: ['', ' ', 'ünï 🙂'], refused: [1, null, undefined], beyondJsonSchema: ['a\u0000b'] },
  NonBlank: {
    schema: NonBlank,
    accepted: ['a', ' a '],
    refused: ['', ' ', '\t\n', '\u00a0\ufeff'],
    beyondJsonSchema: ['a\u0000'],
  },
  Uid22: { schema: Uid22, accepted: [uid], refused: ['', uid.slice(1), `${uid}0`, `${uid.slice(1)}-`, `${uid}\n`] },
  IdempotencyKey: {
    schema: IdempotencyKey,
    accepted: ['a', '!~', 'x'.repeat(255)],
    refused: ['', 'a b', 'ü', 'x'.repeat(256), 'a\n'],
  },
  TurnNumber: { schema: TurnNumber, accepted: [1, 1_000_000], refused: [0, -1, 1.5, 1_000_001, '1', Number.NaN] },
  QueryTime: {
    schema: QueryTime,
    accepted: [
      '2026-11-21T10:00:00Z',
      '2026-11-21t10:00:00.123456789z',
      '0001-01-01T00:00:00Z',
      '2026-01-01T00:00:00+14:00',
    ],
    refused: ['', '2026-11-21', '2026-11-21T10:00:00', '2026-13-01T00:00:00Z', 'now', 1],
    beyondJsonSchema: ['0000-01-01T00:00:00Z'],
  },
  ApprovalPolicy: {
    schema: ApprovalPolicy,
    accepted: ['ask', 'auto-approve', 'auto-deny'],
    refused: ['', 'ASK', 'never', null],
  },
  MCPServerConfig: {
    schema: MCPServerConfig,
    accepted: [
      { command: 'a', args: [] },
      { url: 'https://a' },
      { warp_id: 'a' },
      { id: 'a' },
      { warp_id: 'a', id: 'b' },
    ],
    refused: [{}, { command: '' }, { command: 'a', url: 'b' }, { url: 'a', id: 'b' }, { command: 'a', args: [1] }],
  },
  HarnessConfig: {
    schema: HarnessConfig,
    accepted: [{}, { type: 'oz' }, { type: 'acp', command: ['a', ''] }, { other: 1 }],
    refused: [{ type: '' }, { command: [] }, { command: Array.from({ length: 65 }, () => 'a') }],
  },
  'AmbientAgentConfig of an answer': {
    schema: AmbientAgentConfig,
    accepted: [{}, { skill_spec: 'a/b:c', skills: ['a/b:c'] }, { kept: { as: 'it is' } }],
    refused: [{ environment_id: 'short' }, { idle_timeout_minutes: 61 }, { skills: [''] }, []],
  },
  'RequestedAgentConfig of a request': {
    schema: RequestedAgentConfig,
    accepted: [
      {},
      { skill_spec: 'a/b:c' },
      { skills: ['a/b:c'] },
      { environment_id: uid },
      { idle_timeout_minutes: 0.5 },
    ],
    refused: [
      { skill_spec: 'a/b:c', skills: ['a/b:c'] },
      { child_runs: { enabled: true, max_live: 33 } },
      { secrets: [{}] },
    ],
  },
  Repository: {
    schema: Repository,
    accepted: [
      { owner: 'acme', repo: 'site.js' },
      { owner: '.github', repo: '..a' },
    ],
    refused: [
      { owner: '..', repo: 'a' },
      { owner: 'a', repo: '.' },
      { owner: 'a/b', repo: 'c' },
      { owner: '', repo: 'a' },
    ],
  },
  CreateEnvironmentRequest: {
    schema: CreateEnvironmentRequest,
    accepted: [{ config: { name: 'E' } }, { config: { name: 'E', description: null, setup_commands: ['true'] } }],
    refused: [{}, { config: {} }, { config: { name: ' ' } }, { config: { name: 'x'.repeat(201) } }],
  },
  RunMetadata: {
    schema: RunMetadata,
    accepted: [{}, pairs(20), { 'a.B_c-1': '' }, { k: 'x'.repeat(256) }],
    refused: [pairs(21), { '': 'a' }, { 'a b': 'c' }, { k: 'x'.repeat(257) }, { k: 1 }],
    beyondJsonSchema: [{ k: 'ü'.repeat(129) }],
  },
  AttachmentInput: {
    schema: AttachmentInput,
    accepted: [file, { ...file, mime_type: 'text/plain; charset=utf-8' }],
    refused: [
      { ...file, file_name: '' },
      { ...file, mime_type: 'png' },
      { ...file, mime_type: 'a/b\r\nc: d' },
    ],
  },
  RunAgentRequest: {
    schema: RunAgentRequest,
    accepted: [
      { prompt: 'a' },
      { skill: 'a/b:c' },
      { prompt: '', skill: 'a/b:c' },
      { config: { skills: ['a/b:c'] } },
      { conversation_id: 'a' },
      { prompt: 'a', unknown: 1 },
      { prompt: 'x'.repeat(1024 * 1024) },
    ],
    refused: [
      {},
      { prompt: ' ' },
      { prompt: 'x'.repeat(1024 * 1024 + 1) },
      { config: { skills: [] } },
      { prompt: 'a', mode: 'fast' },
      { prompt: 'a', attachments: Array.from({ length: 6 }, () => file) },
      { prompt: 'a', title: 'x'.repeat(501) },
    ],
    beyondJsonSchema: [{ prompt: 'ü'.repeat(512 * 1024 + 1) }],
  },
  RerunRequest: { schema: RerunRequest, accepted: [{}, { prompt: 'a' }], refused: [{ prompt: '' }, { title: 1 }] },
  RunFollowupRequest: {
    schema: RunFollowupRequest,
    accepted: [{}, { message: '' }, { decision: 'deny', request_id: 'r', message: 'no' }],
    refused: [{ decision: 'maybe' }, { request_id: 'x'.repeat(201) }, { message: null }],
  },
  ChildRunRequest: {
    schema: ChildRunRequest,
    accepted: [{ prompt: 'a' }],
    refused: [{}, { prompt: ' ' }, { prompt: 'a', config: { skill_spec: 'a', skills: ['a'] } }],
  },
  ListChildRunsQuery: {
    schema: ListChildRunsQuery,
    accepted: [{}, { run_ids: ['a'], wait_ms: 60_000, until: 'any' }],
    refused: [
      { wait_ms: -1 },
      { wait_ms: 60_001 },
      { until: 'never' },
      { run_ids: Array.from({ length: 101 }, () => 'a') },
    ],
  },
  RunMessage: {
    schema: RunMessage,
    accepted: [{ run_id: 'a', message: 'b' }],
    refused: [{ run_id: 'a', message: '' }, { message: 'b' }, { run_id: 'a', message: 'x'.repeat(64 * 1024 + 1) }],
  },
  ListRunsQuery: {
    schema: ListRunsQuery,
    accepted: [
      {},
      { limit: 500, state: ['QUEUED'], metadata: pairs(5), created_after: '2026-11-21T10:00:00Z' },
      {
        source: ['MCP', 'CLI'],
        task_status: ['running', 'failed'],
        factory_uid: Array(50).fill('f'),
        factory_only: true,
      },
    ],
    refused: [
      { source: ['FAX'] },
      { task_status: ['lost'] },
      { factory_uid: Array(51).fill('f') },
      { factory_only: 'yes' },
      { limit: 0 },
      { limit: 501 },
      { state: ['LOST'] },
      { metadata: pairs(6) },
      { sort_by: 'size' },
      { q: 'x'.repeat(501) },
    ],
  },
  SubscriptionFilter: {
    schema: SubscriptionFilter,
    accepted: [{}, { name: 'a', metadata: pairs(5) }],
    refused: [{ name: ' ' }, { metadata: pairs(6) }, { source: 'POST' }],
  },
  CreateEventSubscriptionRequest: {
    schema: CreateEventSubscriptionRequest,
    accepted: [event, { ...event, events: ['run.ended', 'run.ended'], enabled: false }],
    refused: [
      {},
      { ...event, events: [] },
      { ...event, events: ['ping'] },
      { ...event, url: 'http:' },
      { ...event, url: 'ftp://example.com' },
      { ...event, url: `https://${'x'.repeat(2000)}` },
    ],
  },
  ListDeliveriesQuery: {
    schema: ListDeliveriesQuery,
    accepted: [{}, { limit: 100, status: 'failed' }],
    refused: [{ limit: 101 }, { status: 'lost' }, { cursor: 'x'.repeat(8193) }],
  },
  CreateKeyRequest: {
    schema: CreateKeyRequest,
    accepted: [
      { name: 'K', kind: 'personal' },
      { name: 'K', kind: 'agent', agent_uid: 'a', expires_in: '30d' },
    ],
    refused: [
      { name: '', kind: 'personal' },
      { name: 'K', kind: 'personal', agent_uid: 'a' },
      { name: 'K', kind: 'robot' },
      { name: 'K', kind: 'agent', expires_in: '2d' },
    ],
  },
  CreateScheduledAgentRequest: {
    schema: CreateScheduledAgentRequest,
    accepted: [
      schedule,
      ...['@hourly', '@EVERY 1h30m', ' 0 9 * * MON-FRI ', '*/5 0,12 1-3\t* sun'].map((cron_schedule) => ({
        ...schedule,
        cron_schedule,
      })),
      { ...schedule, prompt: undefined, agent_config: { skill_spec: 'a:b' } },
    ],
    refused: [
      { ...schedule, prompt: ' ' },
      { ...schedule, cron_schedule: ' ' },
      { ...schedule, name: '' },
    ],
  },
  PutSecretRequest: {
    schema: PutSecretRequest,
    accepted: [secret, { ...secret, value: `\n${secret.value}\n`, agents: ['a'] }],
    refused: [
      { ...secret, value: 'abcdefg' },
      { ...secret, value: ' abcdef ' },
      { ...secret, value: 'ab'.repeat(16 * 512 + 1) },
      { ...secret, scope: 'personal', agents: [] },
    ],
    beyondJsonSchema: [
      { ...secret, value: 'aaaabbbb' },
      { ...secret, value: 'abcü'.repeat(4 * 1024) },
    ],
  },
  CreateMcpServerRequest: {
    schema: CreateMcpServerRequest,
    accepted: [
      { name: 'a', command: 'b', args: [], env: { A: 'b' } },
      { name: 'a', url: 'HTTPS://a.com', headers: { a: 'b' } },
    ],
    refused: [
      { name: 'a' },
      { name: 'a', command: 'b', url: 'https://a.com' },
      { name: 'a', command: 'b', headers: {} },
      { name: 'a', url: 'https://a.com', args: [] },
      { name: 'a', url: 'https://a.com', env: {} },
    ],
  },
  TestFilterRequest: {
    schema: TestFilterRequest,
    accepted: [
      { filter: {}, payload: null },
      { filter: {}, delivery_id: id },
    ],
    refused: [{ filter: {} }, { filter: {}, payload: 1, delivery_id: id }],
  },
  SimulateDeliveryRequest: {
    schema: SimulateDeliveryRequest,
    accepted: [{ payload: 1 }, { delivery_id: id }],
    refused: [{}, { payload: 1, delivery_id: id }, { delivery_id: id, event: 'push' }],
  },
  DryRunRequest: {
    schema: DryRunRequest,
    accepted: [{ payload: 1, webhook_uid: 'a' }, { delivery_id: id }, { schedule_name: '' }],
    refused: [
      {},
      { payload: 1, schedule_name: 'a' },
      { schedule_name: 'a', webhook_uid: 'b' },
      { delivery_id: id, event: 'push' },
    ],
  },
  HmacSignature: {
    schema: HmacSignature,
    accepted: [
      { header: 'X-A' },
      { header: 'X-A', id_header: 'X-B' },
      { header: 'X-A', signed: '{timestamp}.{body}', timestamp_header: 'X-T', max_age_seconds: 1 },
      { header: 'X-A', signed: '{id}.{timestamp}.{body}', id_header: 'X-B', timestamp_header: 'X-T' },
    ],
    refused: [
      { header: 'X-A', signed: '' },
      { header: 'X-A', signed: '{body}{body}' },
      { header: 'X-A', signed: '{id}.{body}' },
      { header: 'X-A', signed: '{id}{body}', id_header: 'X-B' },
      { header: 'X-A', signed: '{id}.{id}.{body}', id_header: 'X-B' },
      { header: 'X-A', signed: '{timestamp}.{body}' },
      { header: 'X-A', signed: '{body}', timestamp_header: 'X-T' },
      { header: 'X-A', timestamp_header: 'X-T' },
      { header: 'X-A', max_age_seconds: 1 },
    ],
  },
  RunnerConfig: {
    schema: RunnerConfig,
    accepted: [{ docker_image: 'node:24' }, { os: 'macos' }, { os: 'linux', docker_image: 'node:24' }],
    refused: [{}, { os: 'linux' }, { setup_commands: [] }],
  },
  DispatchRequest: {
    schema: DispatchRequest,
    accepted: [{ prompt: 'a' }, { prompt: 'a', ticket_url: 'https://example.com/1' }],
    refused: [
      { prompt: 'a', ticket_url: 'https:' },
      { prompt: 'a', ticket_url: 'javascript:alert(1)' },
      { prompt: 'a', ticket_url: 'https:///1' },
    ],
  },
  UploadSnapshot: {
    schema: UploadSnapshot,
    accepted: [
      { turn: 1, files: [] },
      { turn: 1, files: [upload] },
    ],
    refused: [
      { files: [] },
      { turn: 0, files: [] },
      { turn: 1, files: [{ ...upload, size_bytes: 25 * 1024 * 1024 + 1 }] },
      { turn: 1, files: Array.from({ length: 101 }, () => upload) },
    ],
  },
};

/** Shortens a long value for the title of a test. */
const titled = (value: unknown) => [(JSON.stringify(value) ?? String(value)).slice(0, 80), value] as const;

const ajv = new Ajv2020({ strict: false });
addFormats.default(ajv);

/**
 * Compiles the schema in the same form as in the OpenAPI document. Unknown keywords are ignored, because the names of the document's
 * schemas are not keywords of JSON Schema.
 */
function compiled(schema: z.ZodType): (value: unknown) => boolean {
  const json = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  return ajv.compile(
    JSON.parse(JSON.stringify(json, (key, value) => (key === 'id' && typeof value === 'string' ? undefined : value))),
  );
}

describe.each(Object.entries(tables))('%s', (_, { schema, accepted, refused, beyondJsonSchema = [] }) => {
  const isValid = compiled(schema);

  test.each(accepted.map(titled))('accepts %s', (_title, value) => {
    expect(schema.safeParse(value).error?.issues ?? []).toEqual([]);
    expect(isValid(value)).toBe(true);
  });

  test.each(refused.map(titled))('refuses %s, as the OpenAPI document says', (_title, value) => {
    expect(schema.safeParse(value).success).toBe(false);
    expect(isValid(value)).toBe(false);
  });

  test.each(beyondJsonSchema.map(titled))('refuses %s', (_title, value) => {
    expect(schema.safeParse(value).success).toBe(false);
    expect(isValid(value), 'JSON Schema refuses it too: move it to `refused`').toBe(true);
  });
});

/** Values that match the schemas of the contract but that other code of the service refuses. */
test.each([
  ['a cron expression of four fields', CreateScheduledAgentRequest, { ...schedule, cron_schedule: '* * * *' }],
  ['a cron expression of six fields', CreateScheduledAgentRequest, { ...schedule, cron_schedule: '0 * * * * *' }],
  ['a duration without a unit', CreateScheduledAgentRequest, { ...schedule, cron_schedule: '@every 90' }],
  ['a skill without a place', RunAgentRequest, { skill: 'acme/site' }],
  ['a skill of three parts', RunAgentRequest, { skill: 'a/b/c:deploy' }],
  ['a skill with a name in capitals', RunAgentRequest, { config: { skill_spec: 'a/b:Deploy' } }],
  ['a skill whose file is no SKILL.md', RunAgentRequest, { config: { skills: ['a/b:skills/deploy.md'] } }],
  ['an address of a server that is not reached over HTTP', CreateMcpServerRequest, { name: 'a', url: 'ftp://a.com' }],
  ['an address of a subscription that is no URL', CreateEventSubscriptionRequest, { ...event, url: 'example.com' }],
])('the OpenAPI document refuses %s', (_title, schema, value) => {
  expect(compiled(schema)(value)).toBe(false);
});

test('the configuration of a run may have both skill_spec and skills', () => {
  const config = { skill_spec: 'a/b:c', skills: ['a/b:c'] };
  expect(AgentTask.shape.agent_config.parse(config)).toEqual(config);
});
