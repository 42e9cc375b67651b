/**
 * Items that an agent can find in its inbox, with one schema for each kind. `InboxItem` in `agent-protocol.ts` is the union of these
 * schemas.
 */
import { z } from 'zod';
import { AgentRequest, AllowFor, Decision } from '../runs/approvals.ts';
import { RunMode } from '../runs/message-origin.ts';

const kind = <T extends string>(type: T) => z.literal(type).describe('Kind of the item');

/** Members that describe a file of a prompt. */
const attachmentMembers = {
  file_name: z.string().describe('Name of the file'),
  mime_type: z.string().describe('Media type'),
  size_bytes: z.int().describe('Size in bytes'),
  path: z.string().describe('Path below the server root, readable with the run token'),
};

/** A file of a prompt. */
export const AgentAttachment = z
  .object(attachmentMembers)
  .meta({ id: 'AgentAttachment', description: 'A file that came with a prompt' });
export type AgentAttachment = z.infer<typeof AgentAttachment>;

/** A file of a prompt of the run, in the task of an agent. */
export const TaskAttachment = z
  .object({
    ...attachmentMembers,
    earlier: z.literal(true).optional().describe('Present if it came with a prompt of an earlier execution'),
  })
  .meta({ id: 'TaskAttachment', description: 'A file that came with a prompt of the run' });

export const CancelItem = z
  .object({ type: kind('cancel') })
  .meta({ id: 'CancelItem', description: 'The run is over: stop the turn and exit within 5 s' });

export const LeaveItem = z
  .object({ type: kind('leave') })
  .meta({ id: 'LeaveItem', description: 'No further turn comes: exit' });

export const InterruptItem = z
  .object({
    type: kind('interrupt'),
    turn: z.int().describe('Number of the turn to end'),
  })
  .meta({ id: 'InterruptItem', description: 'End this turn and wait' });

export const ChangesItem = z
  .object({ type: kind('changes'), asked: z.int().describe('Number of the request: 1, 2, …') })
  .meta({
    id: 'ChangesItem',
    description: 'Report the changed files of the workspace, because a person looks at them',
  });

export const FollowUpItem = z
  .object({
    type: kind('follow_up'),
    id: z.string().describe('Id of the follow-up'),
    position: z.int().describe('Follow-ups are taken in the order of their positions'),
    message: z.string().describe('Message of the user'),
    mode: RunMode.optional(),
    attachments: z.array(AgentAttachment).optional().describe('Files of the message'),
    answers: z
      .string()
      .optional()
      .describe('Id of the request that it answers. While that request is open, the answer is not a separate turn'),
    decision: Decision.optional(),
    allow_for: AllowFor.optional(),
    late: z
      .boolean()
      .optional()
      .describe(
        'True: it approves a held action that no program tries any more, so it is a turn: the harness tries again',
      ),
    debug: z
      .boolean()
      .optional()
      .describe(
        'True: it is for the sandbox of a failed setup. Other follow-ups wait for a sandbox whose setup succeeds',
      ),
  })
  .meta({ id: 'FollowUpItem', description: 'A follow-up: the next turn after the present one' });

export const HeldItem = z
  .object({
    type: kind('held'),
    number: z.int().describe('Items of this kind have ascending numbers'),
    request: AgentRequest,
  })
  .meta({
    id: 'HeldItem',
    description:
      'The gateway or the proxy holds an action until a person decides: ask this request, whatever the approval policy',
  });
