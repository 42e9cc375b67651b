/** Examples of the operations on runs. */
import {
  type Example,
  exampleChanges,
  exampleCreator,
  exampleIds,
  exampleScope,
  exampleTimes,
  runbookPrompt,
  signed,
} from '../wire/example.ts';

const { RUN_ID: runId, CONVERSATION_ID: conversationId } = exampleIds;
const { created, started, ended } = exampleTimes;

const prepare = { files: [{ filename: 'note.txt', mime_type: 'text/plain' }] };
const uploadUrl = `http://127.0.0.1:4180/api/v1/agent/attachments/${exampleIds.ATTACHMENT_ID}?expires=…&signature=…`;
const prepared = {
  attachments: [
    {
      attachment_id: exampleIds.ATTACHMENT_ID,
      upload_url: uploadUrl,
      upload_target: { url: uploadUrl, method: 'PUT', headers: { 'Content-Type': 'text/plain' }, fields: [] },
    },
  ],
} as const;
const created200 = { run_id: runId, task_id: runId, state: 'QUEUED' };
const run = {
  run_id: runId,
  task_id: runId,
  title: 'Hello',
  state: 'SUCCEEDED',
  prompt: runbookPrompt,
  created_at: created,
  updated_at: ended,
  started_at: started,
  finished_at: ended,
  root_run_id: runId,
  source: 'API',
  creator: exampleCreator,
  executor: exampleCreator,
  agent_config: { model_id: 'runbook' },
  conversation_id: conversationId,
  is_sandbox_running: true,
  is_run_type_cancellable: true,
  artifacts: [],
  metadata: { ticket: 'OPS-7' },
  scope: exampleScope,
  execution_location: 'REMOTE',
  run_time: 'PT0.75S',
};
const create: Example = {
  body: { title: 'Hello', prompt: runbookPrompt, config: { model_id: 'runbook' }, metadata: { ticket: 'OPS-7' } },
  answer: created200,
};
const timelineEvent = {
  event_uuid: '019a1c52-7d21-7a3c-8f50-b6c7d8e9fa01',
  run_id: runId,
  event_type: 'oz_run_created',
  occurred_at: created,
};
const eventLine = (id: string, type: string, data: unknown): string =>
  `id: ${id}\nevent: ${type}\ndata: ${JSON.stringify(data)}\n\n`;

const command = { action_id: 'a1', category: 'command', name: 'sh' };
const commandBlock = { type: 'action', id: 'a1', category: 'command', name: 'sh', input: { command: 'echo hello' } };
const resultBlock = {
  type: 'action_result',
  ...command,
  state: 'completed',
  output: { text: 'hello\n', exit_code: 0 },
};

/** The conversation of a run with the prompt of the examples. */
export const conversation = {
  conversation_id: conversationId,
  steps: [
    {
      id: 's1',
      description: runbookPrompt,
      started_at: started,
      completed_at: ended,
      messages: [
        { role: 'user', content: [{ type: 'text', text: runbookPrompt }], timestamp: started },
        {
          role: 'assistant',
          content: [commandBlock],
        },
        {
          role: 'tool',
          content: [resultBlock],
        },
      ],
      steps: [],
    },
  ],
};

export const runExamples = {
  createRun: create,
  createRunDeprecated: create,
  listRuns: {
    query: { limit: 10, state: ['SUCCEEDED'], metadata: { ticket: 'OPS-7' } },
    answer: { runs: [run], page_info: { has_next_page: false } },
  },
  countRuns: {
    query: { created_after: created, created_before: '2026-10-26T12:00:00.000Z', step: '1h' },
    answer: {
      total: 3,
      is_exact: true,
      states: { SUCCEEDED: 2, FAILED: 1 },
      spent_usd: 0.42,
      steps: [{ started_at: created, states: { SUCCEEDED: 2, FAILED: 1 } }],
    },
  },
  getRun: { answer: run },
  rerunRun: { body: { title: 'Hello again' }, answer: created200 },
  rerunFailedRuns: {
    answer: {
      reruns: [{ run_id: runId, rerun_run_id: '019a1c52-7d23-7a3c-8f50-b6c7d8e9fa05' }],
      refused: [],
      has_more: false,
    },
  },
  deleteRun: { answer: { success: true } },
  cancelRun: { answer: runId },
  sendFollowup: {
    body: { message: 'Again.\n\n```sh\necho again\n```' },
    answer: { followup_id: exampleIds.FOLLOWUP_ID, outcome: 'live_session', run_id: runId },
  },
  editFollowup: { body: { message: 'Only check the build.' }, answer: {} },
  withdrawFollowup: { answer: { success: true } },
  interruptRun: { answer: {} },
  sendConversationFollowup: {
    body: { message: 'Again.\n\n```sh\necho again\n```' },
    answer: { followup_id: exampleIds.FOLLOWUP_ID, outcome: 'live_session', run_id: runId },
  },
  prepareRunAttachments: { body: prepare, answer: prepared },
  prepareConversationAttachments: { body: prepare, answer: prepared },
  putAttachment: { query: signed, bytes: 'hello', answer: {} },
  interruptConversation: { answer: { run_id: runId } },
  forkConversation: {
    body: { title: 'Another way' },
    answer: { forked_conversation_id: conversationId },
  },
  renameConversation: { body: { title: 'Broken tests' }, answer: { title: 'Broken tests' } },
  downloadConversationScreenshot: {},
  getHarnessUsage: { answer: { available: false, run_id: runId, conversation_id: conversationId } },
  getRunTimeline: {
    answer: { events: [timelineEvent, { ...timelineEvent, event_type: 'agent_started', occurred_at: started }] },
  },
  getRunConversation: { answer: conversation },
  listRunMessages: {
    query: { limit: 50 },
    answer: {
      conversation_id: conversationId,
      steps: [
        {
          id: 's1',
          completed_at: ended,
          messages: [
            { role: 'assistant', content: [commandBlock], seq: 6 },
            { role: 'tool', content: [resultBlock], seq: 6 },
          ],
        },
      ],
      continued: [],
      reached: '11',
      older: 'WyI…',
    },
  },
  findInRun: {
    query: { text: 'npm test' },
    answer: {
      count: 1,
      matches: [{ seq: 6, kind: 'action', is_failed: true, occurred_at: started, excerpt: 'shell npm test' }],
    },
  },
  getRunMessage: {
    answer: {
      conversation_id: conversationId,
      steps: [
        {
          id: 's1',
          started_at: started,
          messages: [
            { role: 'assistant', content: [commandBlock] },
            { role: 'tool', content: [resultBlock] },
          ],
          steps: [],
        },
      ],
    },
  },
  getRunTranscript: {},
  streamRunEvents: {
    query: { follow: false },
    answer:
      eventLine('1', 'state', { type: 'state', state: 'QUEUED' }) +
      eventLine('2', 'timeline', { type: 'timeline', event: timelineEvent }),
  },
  streamTeamEvents: {
    answer: eventLine('1', 'state', { type: 'state', state: 'QUEUED', run_id: runId }),
  },
  getConversation: { answer: conversation },
  getConversationTranscript: {},
  checkSessionRedirect: { answer: { conversation_id: conversationId } },
  checkConversationRedirect: { answer: { session_id: exampleIds.SESSION_UUID } },
  getRunChanges: { answer: { as_of: ended, is_live: false, repositories: exampleChanges } },
  listHandoffAttachments: {
    answer: {
      attachments: [
        {
          attachment_id: exampleIds.FILE_ID,
          filename: 'runyard.patch',
          size_bytes: 2_048,
          download_url: 'http://127.0.0.1:4180/api/v1/blobs/snapshot/…?expires=…&signature=…',
          mime_type: 'text/x-diff',
        },
      ],
    },
  },
} as const satisfies Record<string, Example>;
