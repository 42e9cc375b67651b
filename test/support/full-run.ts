/** Test support: acts as the agent of a run, and makes a run that has one of everything that the page of a run shows. */
import { randomUUID } from 'node:crypto';
import type { TimelineEventType } from '@runyard/contract/runs/timeline';
import type { Assignment } from '../../packages/service/src/runs/executions/queue/assign.ts';
import { appendTimelineEvent } from '../../packages/service/src/runs/executions/timeline/timeline.ts';
import { recordPullRequestEvent } from '../../packages/service/src/runs/files/artifacts/pull-requests.ts';
import { switchModel } from '../../packages/service/src/runs/runs/model-in-use.ts';
import { recordUsage } from '../../packages/service/src/team/usage/record-usage.ts';
import type { TestService } from '../../packages/service/test/service.ts';
import { reportsTo } from './dashboard.ts';

/** An agent that works on a run. */
export interface ActedAgent extends Assignment {
  /** Reports events of the conversation, with the next sequence numbers. */
  report(...events: Record<string, unknown>[]): Promise<void>;
  /** Sends a request with the token of the run. `path` is below `/harness-support`. */
  send<T>(path: string, body: unknown): Promise<T>;
  /** Reports an artifact. `bytes` are those of a file. Returns the UID of the artifact. */
  artifact(type: string, data: object, bytes?: string | Buffer): Promise<string>;
  /** Saves the files that the run leaves at the end of its turn. The content of each file is its name. */
  handOff(...fileNames: string[]): Promise<void>;
  /** Adds an event of the service or the worker to the timeline. */
  happen(type: TimelineEventType, payload: Record<string, unknown>): Promise<void>;
}

/** Starts a run. The returned agent has reported that it works in its first turn. */
export async function startAgent(service: TestService, body: Record<string, unknown>): Promise<ActedAgent> {
  const assignment = await service.startExecution(body);
  const { runId, executionId, runToken: key } = assignment;
  const report = reportsTo(service);
  const send = async <T>(path: string, sent: unknown): Promise<T> => {
    const answer = await service.request<T>('POST', `/harness-support${path}`, { key, body: sent });
    if (answer.status !== 200) throw new Error(`${path}: ${answer.text}`);
    return answer.body;
  };
  const put = async (url: string, bytes: string | Buffer) => {
    const raw = typeof bytes === 'string' ? bytes : new Uint8Array(bytes);
    const headers = { 'content-type': 'application/octet-stream' };
    const answer = await service.request('PUT', url, { key: null, raw, headers });
    if (answer.status !== 200) throw new Error(answer.text);
  };
  const agent: ActedAgent = {
    ...assignment,
    send,
    report: (...events) => report(assignment, ...events),
    artifact: async (artifact_type, data, bytes) => {
      const made = await send<{ artifact_uid: string; upload_url?: string }>('/report-artifact', {
        artifact_type,
        data,
      });
      if (bytes !== undefined) await put(made.upload_url ?? '', bytes);
      return made.artifact_uid;
    },
    handOff: async (...names) => {
      const announced = names.map((filename) => ({ filename, size_bytes: filename.length }));
      const { files } = await send<{ files: { filename: string; upload_url: string }[] }>('/upload-snapshot', {
        turn: 1,
        files: announced,
      });
      for (const { filename, upload_url: url } of files) await put(url, filename);
    },
    happen: async (type, payload) =>
      await appendTimelineEvent(service.deps.db, { runId, executionId, type, payload, changesRun: true }),
  };
  await agent.report(
    { type: 'agent_started', harness: 'oz', model_id: 'runbook' },
    { type: 'turn_started', step_id: 's', prompt: String(body.prompt ?? 'Do it') },
  );
  return agent;
}

/** Records a request to a model whose price is not known. */
export async function useUnpricedModel(service: TestService, runId: string, executionId: string): Promise<void> {
  const person = { kind: 'user', uid: 'someone' } as const;
  await recordUsage(service.deps.db, {
    runId,
    executionId,
    teamId: service.teamId,
    ancestorIds: [],
    creator: person,
    executor: person,
    environmentId: null,
    automationUid: null,
    factoryUid: null,
    modelId: 'local/qwen3-coder',
    provider: 'anthropic',
    requestId: randomUUID(),
    inputTokens: 100,
    outputTokens: 30,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
    costUsd: null,
    breakdown: null,
    toolsUsd: 0,
    chargedUsd: 0,
    isAnswer: true,
    status: 200,
    durationMs: 12,
  });
}

/** A report of one changed line. */
export const oneChange = {
  repositories: [
    {
      path: 'billing',
      branch: 'tax-per-invoice',
      files: [
        {
          path: 'src/tax.ts',
          status: 'modified',
          additions: 1,
          deletions: 1,
          patch: '@@ -1,2 +1,2 @@\n const a = 1;\n-round(line)\n+round(invoice)\n',
        },
      ],
    },
  ],
};

/** A picture of one pixel. */
export const onePixel = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

const step = { type: 'setup_step_finished', kind: 'setup_command', duration_ms: 1_200 };
const edit = { path: 'src/tax.ts', old_string: 'round(line)', new_string: 'round(invoice)' };
const action = (id: string, category: string, input: unknown) => ({
  type: 'action',
  step_id: 's',
  action_id: id,
  category,
  name: 'tool',
  input,
});
const denied = { host: 'registry.test', port: 443, reason: 'host_not_allowed', message: 'the host is not allowed' };

/**
 * Makes a run in progress with setup steps, a plan, a changed file, an answered question, child runs, artifacts of each kind, denied
 * connections, a push, another model than requested, a withheld right, a cost that is not known, and files to hand off.
 */
export async function startFullRun(service: TestService): Promise<ActedAgent> {
  const { body: environment } = await service.request<{ uid: string }>('POST', '/agent/environments', {
    body: { config: { name: 'billing' } },
  });
  const agent = await startAgent(service, {
    title: 'Round the tax',
    prompt: 'Round the tax of each invoice',
    mode: 'orchestrate',
    metadata: { ticket: 'BILL-431' },
    config: {
      environment_id: environment.uid,
      model_id: 'runbook',
      max_duration_minutes: 30,
      max_turns: 20,
      idle_timeout_minutes: 5,
    },
  });
  const { runId, executionId } = agent;
  await agent.happen('worker_container_ready', {
    backend: 'bubblewrap',
    spawn_ms: 14,
    limits: { memory_mb: 4096, processes: 512 },
    features: ['user', 'no-network'],
    missing: [{ feature: 'cgroup', reason: 'nobody <i>delegates</i> one' }],
  });
  await agent.happen('connection_denied', { number: 1, count: 1, ...denied });
  await agent.happen('connection_denied', { number: 21, total: 4, connections: [{ ...denied, count: 4 }] });
  const branches = [{ branch: 'tax-per-invoice', result: 'pushed' }];
  await agent.happen('git_push', { repository: 'acme/billing', branches });
  const steps = ['Plan it', 'Do it'].map((content, index) => ({
    content,
    status: index === 0 ? 'completed' : 'in_progress',
  }));
  await agent.report(
    { ...step, step_id: 'one', name: 'npm ci' },
    { type: 'notice', step_id: 's', name: 'plan', data: { entries: steps } },
    action('edit', 'files', edit),
    { type: 'action_result', action_id: 'edit', state: 'completed' },
    action('test', 'command', { command: 'npm test' }),
    { type: 'action_output', action_id: 'test', text: 'one test failed' },
    { type: 'action_result', action_id: 'test', state: 'failed', exit_code: 3 },
    {
      type: 'blocked',
      step_id: 's',
      request: { request_id: 'q', kind: 'question', title: 'Round up or down?', options: ['Up', 'Down'] },
    },
  );
  const answer = await service.request<{ followup_id: string }>('POST', `/agent/runs/${runId}/followups`, {
    body: { message: 'Up', request_id: 'q' },
  });
  await agent.report(
    { type: 'follow_up_taken', follow_up_id: answer.body.followup_id },
    {
      type: 'decided',
      step_id: 's',
      request_id: 'q',
      kind: 'question',
      title: 'Round up or down?',
      decision: 'answer',
      by: 'person',
      follow_up_id: answer.body.followup_id,
      message: 'Up',
    },
  );
  const child = await agent.send<{ run_id: string }>('/child-runs', { prompt: 'Round one invoice' });
  await switchModel(service.deps.db, { runId, executionId, from: 'runbook', to: 'other/model', reason: 'an outage' });
  await useUnpricedModel(service, child.run_id, randomUUID());
  await useUnpricedModel(service, runId, executionId);
  await agent.artifact('PLAN', { title: 'Round tax per invoice', content: '# Steps' });
  const url = 'https://github.com/acme/billing/pull/4824';
  await agent.artifact('PULL_REQUEST', { url, branch: 'tax' });
  await mergePullRequest(service, runId, url);
  await agent.artifact('FILE', { filename: 'report.md', mime_type: 'text/plain' }, 'The **report** <b>as text</b>');
  await agent.artifact('FILE', { filename: 'page.html', mime_type: 'text/plain' }, '<html><script>a()</script></html>');
  await agent.artifact('FILE', { filename: 'chart.png', mime_type: 'text/plain' }, onePixel);
  const withheld = [{ right: 'secret', name: 'NPM_TOKEN', reason: 'NPM_TOKEN needs your acceptance' }];
  await service.deps.db.query(
    `UPDATE run_requests SET rights = jsonb_set(rights, '{withheld}', $2::jsonb) WHERE run_id = $1`,
    [runId, JSON.stringify(withheld)],
  );
  return agent;
}

/** Records the events of a pull request that a person has reviewed and merged. */
async function mergePullRequest({ deps: { db } }: TestService, runId: string, url: string): Promise<void> {
  const [run] = await db.query<{ team_id: string }>('SELECT team_id FROM runs WHERE id = $1', [runId]);
  const at = '2026-01-02T03:04:05Z';
  const headSha = 'a'.repeat(40);
  const sizes = { additions: 10, deletions: 2, changedFiles: 1, commits: 1 };
  const seen = { author: 'acme[bot]', openedAt: at, closedAt: null, changedAt: at, headSha, sizes } as const;
  const checkSuite = { id: 1, app: 'GitHub Actions', head_sha: headSha, conclusion: 'failure', completed_at: at };
  const maya = { url, isPerson: true, login: 'maya' } as const;
  const merged = { ...seen, state: 'merged', mergedAt: at, mergedBy: { login: 'maya', isPerson: true } } as const;
  const open = { ...seen, state: 'open', mergedAt: null, mergedBy: null } as const;
  for (const event of [
    { ...maya, kind: 'opened', isPerson: false, login: 'acme[bot]', seen: open },
    { ...maya, kind: 'checks_completed', isPerson: false, seen: null, checkSuite },
    { ...maya, kind: 'review_approved', seen: null },
    { ...maya, kind: 'pr_action', seen: merged },
  ] as const)
    await recordPullRequestEvent(db, run?.team_id ?? '', { ...event, guid: event.kind });
}
