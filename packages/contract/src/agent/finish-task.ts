/** The report of an agent at the end of a turn, and the next step of the agent. */
import { z } from 'zod';
import { maxChecks } from '../limits.ts';
import { AgentEvent } from '../runs/agent-events.ts';
import { CheckOutcome } from '../runs/checks.ts';
import { ErrorCode } from '../wire/errors.ts';
import { TurnNumber } from '../wire/primitives.ts';

const FinishTaskError = z
  .object({
    code: ErrorCode.optional().describe('Absent: the agent itself failed at the task (FAILED without a code)'),
    retried: z
      .literal(true)
      .optional()
      .describe('True: the failed request was already repeated, so the run ends now, even with a retryable code'),
    message: z.string().describe('Phase, reason and next step, in one text'),
  })
  .meta({ id: 'FinishTaskError', description: 'Why a turn failed' });

/**
 * `POST /harness-support/finish-task` → `{next}`. The agent sends this report at the end of each turn, with the events that the
 * service has not acknowledged yet. The agent may repeat a report if the answer was lost.
 */
export const FinishTask = z
  .object({
    turn: TurnNumber.optional().describe('Number of the turn in the execution: 1, 2, …; absent: 1. A turn ends once'),
    interrupted: z.boolean().optional().describe('True: the turn ended because an `interrupt` asked for it'),
    success: z.boolean().describe('False: the agent failed at the task'),
    summary: z.string().describe('Last message of the agent, or why it failed'),
    error: FinishTaskError.optional(),
    checks: z
      .array(CheckOutcome)
      .max(maxChecks)
      .optional()
      .describe('Outcomes of the checks of the run; absent: none has run'),
    events: z
      .array(AgentEvent)
      .max(1000)
      .optional()
      .describe('Last events of the turn, as `events` takes them; absent: all are sent already'),
    workspace: z
      .literal('empty')
      .optional()
      .describe('`empty`: workspace and home are empty at the end of the turn, so no archive of them follows'),
  })
  .meta({ id: 'FinishTask', description: 'The end of a turn' });
export type FinishTask = z.infer<typeof FinishTask>;

const NextStep = z.enum(['wait', 'leave']).meta({
  id: 'NextStep',
  description: '`wait`: stay, because the inbox brings the next follow-up. `leave`: exit',
});

/** `wait`: the agent keeps running, and the inbox delivers the next follow-up. `leave`: the agent exits. */
export const FinishTaskResponse = z
  .object({
    next: NextStep,
    acknowledged: z
      .int()
      .optional()
      .describe('All events up to this `seq` are stored; absent: the report had no events'),
  })
  .meta({ id: 'FinishTaskResponse', description: 'Next step of the agent after a turn' });
export type FinishTaskResponse = z.infer<typeof FinishTaskResponse>;
