import { z } from 'zod';
import { maxRequestBodyBytes } from '../limits.ts';
import { teamReads, teamWrites } from '../wire/access.ts';
import type { Route } from '../wire/route.ts';
import { FindInRunQuery, RunMatches } from './conversation-find.ts';
import { ListRunMessagesQuery, RunMessagePage } from './conversation-pages.ts';
import {
  ConversationResponse,
  ForkConversationRequest,
  ForkedConversation,
  InterruptedRun,
  maxForkedRuns,
  maxForksOfConversation,
  RenameConversationRequest,
  RenamedConversation,
} from './conversations.ts';
import { runRoutes } from './routes.ts';
import { RunFollowupRequest, RunFollowupResponse } from './run-request.ts';

const conversation = z.object({ conversationId: z.string().meta({ description: 'Id of the conversation' }) });
const run = z.object({ runId: z.string().meta({ description: 'Id of the run' }) });
const noRun = 'No such run, or it belongs to another team';
const noConversation = 'No such conversation, or it belongs to another team';
const rawTranscript = { Location: 'Signed URL of the transcript, for 15 minutes' };
const tooManyReads = 'Too many long conversations are being read at the moment; `Retry-After` tells when to ask again';
const ofLatestRun = 'Interrupts the latest run of the conversation, as if the request named this run.';

export const conversationRoutes = {
  listRunMessages: {
    method: 'GET',
    path: '/agent/runs/{runId}/conversation/messages',
    tag: 'conversations',
    summary: 'Read the conversation of a run by pages, from its end',
    description:
      'The first page has the newest messages, even if the run has none yet. `streamRunEvents` with its `reached` as `Last-Event-ID` sends all that comes after it. Inputs over 16 KB, outputs over 8 KB and texts over 32 KB are shortened.',
    allow: teamReads,
    params: run,
    query: ListRunMessagesQuery,
    answer: { status: 200, description: 'One page', schema: RunMessagePage },
    errors: {
      400: 'A wrong value, or a `before` of another run',
      404: noRun,
      422: 'The harness gives only raw output',
      429: tooManyReads,
    },
  },
  getRunMessage: {
    method: 'GET',
    path: '/agent/runs/{runId}/conversation/messages/{messageSeq}',
    tag: 'conversations',
    summary: 'Read a message of a conversation that a page has shortened',
    description: 'For an action: its call and its result; the conversation stores 64 KB of each.',
    allow: teamReads,
    params: run.extend({ messageSeq: z.string().meta({ description: '`seq` of the message on its page' }) }),
    answer: { status: 200, description: 'The message: one step with it', schema: ConversationResponse },
    errors: { 404: `${noRun}, or no message with this number`, 429: tooManyReads },
  },
  findInRun: {
    method: 'GET',
    path: '/agent/runs/{runId}/conversation/find',
    tag: 'conversations',
    summary: 'Find messages in the conversation of a run',
    description:
      'Finds a literal text in all messages, inputs and outputs, or all turns or failures. Each match names the first event of its message.',
    allow: teamReads,
    params: run,
    query: FindInRunQuery,
    answer: { status: 200, description: 'A page of matches', schema: RunMatches },
    errors: {
      400: 'A wrong value',
      404: noRun,
      422: 'The harness gives only raw output',
      429: 'The search takes too long, or too many searches of the team run at the moment; `Retry-After` tells when to ask again',
    },
  },
  getConversation: {
    method: 'GET',
    path: '/agent/conversations/{conversationId}',
    tag: 'conversations',
    summary: 'Read a conversation',
    description: 'Over all runs that continued it.',
    allow: teamReads,
    params: conversation,
    answer: { status: 200, description: 'Messages and steps', schema: ConversationResponse },
    errors: { 404: noConversation, 422: 'The harness gives only raw output', 429: tooManyReads },
  },
  getConversationTranscript: {
    method: 'GET',
    path: '/agent/conversations/{conversationId}/transcript',
    tag: 'conversations',
    summary: 'Download the raw transcript of a conversation',
    description: 'Only for third-party harnesses; for the conversation of the built-in harness the answer is 400.',
    allow: teamReads,
    params: conversation,
    answer: { status: 302, description: 'Go to Location', headers: rawTranscript },
    errors: { 400: 'Conversation of the built-in harness', 404: `${noConversation}, or it has no transcript yet` },
  },
  sendConversationFollowup: {
    method: 'POST',
    path: '/agent/conversations/{conversationId}/followups',
    tag: 'conversations',
    summary: 'Send a follow-up to a conversation',
    description: ofLatestRun,
    allow: teamWrites,
    params: conversation,
    body: RunFollowupRequest,
    bodyLimitBytes: maxRequestBodyBytes,
    once: 'sendConversationFollowup',
    answer: { status: 200, description: 'Accepted by the run `run_id`', schema: RunFollowupResponse },
    errors: { ...runRoutes.sendFollowup.errors, 404: noConversation },
  },
  prepareConversationAttachments: {
    ...runRoutes.prepareRunAttachments,
    path: '/agent/conversations/{conversationId}/attachments/prepare',
    tag: 'conversations',
    description: `${ofLatestRun} If another run continues the conversation before the follow-up, prepare the files again.`,
    params: conversation,
    once: 'prepareConversationAttachments',
    errors: { ...runRoutes.prepareRunAttachments.errors, 404: noConversation },
  },
  interruptConversation: {
    method: 'POST',
    endsSomething: true,
    path: '/agent/conversations/{conversationId}/interrupt',
    tag: 'conversations',
    summary: 'End the turn in progress of a conversation',
    description: ofLatestRun,
    allow: teamWrites,
    params: conversation,
    answer: { status: 200, description: 'The agent of the run was notified', schema: InterruptedRun },
    errors: { ...runRoutes.interruptRun.errors, 404: noConversation },
  },
  forkConversation: {
    method: 'POST',
    path: '/agent/conversations/{conversationId}/fork',
    tag: 'conversations',
    summary: 'Fork a conversation',
    description: `Creates a conversation that begins with all ended turns of this one. To continue it, create a run with its id as \`conversation_id\`: the run gets the messages, but not the files. The messages keep their authors, so a run has no right that one of them lacks, until its executor accepts the forked conversation. They are deleted with the runs of the forked conversation. At most ${maxForkedRuns} runs in the conversation, and ${maxForksOfConversation} forks of it.`,
    allow: teamWrites,
    params: conversation,
    body: ForkConversationRequest,
    once: 'forkConversation',
    answer: { status: 200, description: 'The new conversation', schema: ForkedConversation },
    errors: {
      404: noConversation,
      409: 'No turn of the conversation has ended, or the conversation has too many runs or forks',
      422: 'The harness gives only raw output',
    },
  },
  renameConversation: {
    method: 'POST',
    path: '/agent/conversations/{conversationId}/rename',
    tag: 'conversations',
    summary: 'Name a conversation',
    description: 'Reads of the conversation return the title. The titles of its runs stay.',
    allow: teamWrites,
    params: conversation,
    body: RenameConversationRequest,
    answer: { status: 200, description: 'The title', schema: RenamedConversation },
    errors: { 404: noConversation },
  },
  downloadConversationScreenshot: {
    method: 'GET',
    path: '/agent/conversations/{conversationId}/screenshots/{artifactUid}/download',
    tag: 'conversations',
    summary: 'Download a screenshot of a conversation',
    allow: teamReads,
    params: conversation.extend({ artifactUid: z.string().meta({ description: 'UID of the screenshot' }) }),
    answer: { status: 302, description: 'Go to Location', headers: { Location: 'Signed URL, for 15 minutes' } },
    errors: { 404: 'No such conversation, or none of its runs has such a screenshot' },
  },
} as const satisfies Record<string, Route>;
