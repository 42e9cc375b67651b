/** Examples of the operations that the agent inside a sandbox calls. */
import { type Example, exampleChanges, exampleIds, exampleTimes, runbookPrompt, signed } from '../wire/example.ts';

const { RUN_ID: runId, CHILD_RUN_ID: childRunId, EXECUTION_ID: executionId, ARTIFACT_UID: artifactUid } = exampleIds;
const { created, started } = exampleTimes;

const uploadUrl = 'http://127.0.0.1:4180/api/v1/harness-support/…?expires=…&signature=…';
const child = { run_id: childRunId, title: 'Part one', state: 'SUCCEEDED', created_at: created, artifacts: [] };

export const harnessExamples = {
  resolvePrompt: {
    body: {},
    answer: {
      run_id: runId,
      execution_id: executionId,
      execution_number: 1,
      conversation_id: exampleIds.CONVERSATION_ID,
      title: 'Hello',
      prompt: runbookPrompt,
      agent_config: { model_id: 'runbook' },
      attachments: [],
      harness: { type: 'oz' },
      repositories: [],
    },
  },
  reportEvents: {
    body: {
      events: [
        { seq: 1, occurred_at: started, type: 'agent_started', harness: 'oz', model_id: 'runbook' },
        { seq: 2, occurred_at: started, type: 'turn_started', step_id: 's1', prompt: runbookPrompt },
      ],
    },
    answer: { acknowledged: 2 },
  },
  readInbox: {
    query: { wait_ms: 1000, after: 0 },
    answer: { items: [{ type: 'follow_up', id: '1', position: 1, message: 'Again.' }] },
  },
  holdConnection: { body: { host: 'api.example.com', port: 443 }, answer: { decision: 'allowed' } },
  finishTask: { body: { turn: 1, success: true, summary: 'Said hello.' }, answer: { next: 'wait' } },
  reportClientEvent: {
    body: {
      event_uuid: '5f0c2a34-8a0e-4d0c-9f4e-0b1f6a3c7d21',
      event_name: 'setup_worker_image_pull',
      timestamp: '2026-11-21T10:00:03Z',
      payload: {
        start_ts: '2026-11-21T10:00:00Z',
        finish_ts: '2026-11-21T10:00:03Z',
        latency_ms: 3000,
        is_error: false,
      },
    },
    answer: {},
  },
  reportShutdown: { body: { reason: 'The task is finished' }, answer: {} },
  reportArtifact: {
    body: { artifact_type: 'FILE', data: { filename: 'report.txt', filepath: 'report.txt', mime_type: 'text/plain' } },
    answer: { artifact_uid: artifactUid, upload_url: uploadUrl },
  },
  listOwnArtifacts: {
    answer: { artifacts: [{ artifact_type: 'FILE', artifact_uid: artifactUid, title: 'report.txt' }] },
  },
  startFreshCheck: { body: { turn: 1, attempt: 1, name: 'tests' }, answer: { check_run_id: runId } },
  getFreshCheck: {
    answer: {
      state: 'failed',
      exit_code: 1,
      output_tail: '1 of 12 tests failed\n',
      error: 'its command exited with code 1',
    },
  },
  cancelFreshCheck: { body: {}, answer: {} },
  submitResult: {
    body: { turn: 1, result: { severity: 'high' } },
    answer: {
      accepted: false,
      faults: [{ path: '/severity', message: 'must be equal to one of the allowed values: ["low"]' }],
    },
  },
  answerOnGithub: {
    body: { tool: 'comment', input: { body: 'The form sent the password twice.' } },
    answer: { url: 'https://github.com/acme/site/issues/7#issuecomment-1', is_new: true },
  },
  openPullRequest: {
    body: {
      repository: { owner: 'acme', repo: 'site' },
      head: 'fix-login',
      title: 'Fix the login',
      body: 'The form sent the password twice.',
    },
    answer: {
      artifact_uid: artifactUid,
      url: 'https://github.com/acme/site/pull/7',
      branch: 'fix-login',
      is_new: true,
    },
  },
  keepMemory: { query: { turn: 1 }, bytes: 'The user wants a greeting.', answer: {} },
  readMemory: { answer: 'The user wants a greeting.' },
  keepWorkspace: { query: { turn: 1 }, bytes: 'an archive', answer: {} },
  readWorkspace: { answer: 'an archive' },
  readStoredChanges: { answer: 'diff --git a/a b/a\n' },
  readAttachment: { answer: 'hello\n' },
  putArtifactContent: { query: signed, bytes: 'hello', answer: {} },
  uploadSnapshot: {
    body: { turn: 1, files: [{ filename: 'runyard.patch', mime_type: 'text/x-diff', size_bytes: 5 }] },
    answer: { files: [{ filename: 'runyard.patch', upload_url: uploadUrl }] },
  },
  reportChanges: { body: { repositories: exampleChanges }, answer: {} },
  putSnapshotFile: { query: signed, bytes: 'hello', answer: {} },
  startChildRun: {
    body: { title: 'Part one', prompt: runbookPrompt, config: { model_id: 'runbook' } },
    answer: { run_id: childRunId, state: 'QUEUED' },
  },
  listChildRuns: { query: { wait_ms: 1000, until: 'any' }, answer: { child_runs: [child] } },
  getChildRun: { query: { wait_ms: 1000 }, answer: child },
  cancelChildRun: { answer: { ...child, state: 'CANCELLED' } },
  sendRunMessage: {
    body: { run_id: childRunId, message: 'Please say good morning too.' },
    answer: { delivery: 'joined' },
  },
} as const satisfies Record<string, Example>;
