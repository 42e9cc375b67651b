/**
 * Tools with which a run starts other runs, waits for them, cancels them or sends them messages. These runs form a tree. A run gets these
 * tools only if it may start runs or was started by another run.
 */

import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { formatRuns } from '../../../run-tree/format-runs.ts';
import { childConfig } from '../../../run-tree/requests.ts';
import type { RunTree } from '../../../run-tree/tree.ts';
import { ServiceRefusal } from '../../../service/errors.ts';
import {
  type BuiltinTool,
  defineTool,
  failedWith,
  maxResultBytes,
  succeeded,
  type ToolContext,
  type ToolOutcome,
} from './tool.ts';

const runsText = (runs: Parameters<typeof formatRuns>[0]): string =>
  formatRuns(runs, maxResultBytes - 2000, randomBytes(6).toString('hex'));

/**
 * Runs a call that acts on other runs. If the service refuses the call, returns a failed result for the model. If the turn ends during the
 * call, throws the error.
 */
async function withTree(context: ToolContext, work: (tree: RunTree) => Promise<ToolOutcome>): Promise<ToolOutcome> {
  if (context.tree === undefined) return failedWith('this run has no other runs in its tree');
  try {
    return await work(context.tree);
  } catch (error) {
    if (error instanceof ServiceRefusal) return failedWith(error.detail);
    throw error;
  }
}

const runId = z.string().min(1).max(100);

const startRun = defineTool({
  name: 'start_run',
  description:
    'Starts another agent on a part of the work, in a fresh sandbox without files of this workspace, and returns its run_id at once. The prompt must contain everything that the agent needs, and must say what the agent should answer.',
  kind: 'other',
  schema: z.object({
    prompt: z.string().min(1),
    title: z.string().max(200).optional(),
    model_id: z.string().max(300).optional().describe('Another model. Default: yours.'),
    harness: z.string().max(100).optional().describe('Another program that works on the prompt. Default: yours.'),
    environment_id: z.string().max(100).optional().describe('Another environment, by UID, if your run may choose it.'),
    secrets: z
      .array(z.string().max(200))
      .max(50)
      .optional()
      .describe('Names of those of your secrets that the new run gets. Default: none.'),
  }),
  title: ({ prompt, title }) => `Start ${title ?? prompt}`,
  run: ({ prompt, title, ...options }, context) =>
    withTree(context, async (tree) => {
      const config = childConfig(options);
      const child = { prompt, ...(title === undefined ? {} : { title }), ...(config ? { config } : {}) };
      const started = await tree.start(child, context.signal);
      return succeeded(`started run ${started.run_id}; its state is ${started.state}`);
    }),
});

const awaitRuns = defineTool({
  name: 'await_runs',
  description:
    'Waits until runs that you started have ended (or are BLOCKED, waiting for a person) and returns state, last message and artifacts of each.',
  kind: 'other',
  schema: z.object({
    run_ids: z.array(runId).max(100).optional().describe('Default: all that you started.'),
    until: z.enum(['all', 'any']).optional().describe('Default all; any: return when the first one has ended.'),
    timeout_seconds: z.number().min(1).max(14_400).optional().describe('Default 3600.'),
  }),
  title: ({ run_ids }) => (run_ids === undefined ? 'Await all runs' : `Await ${run_ids.length} runs`),
  run: ({ run_ids, until = 'all', timeout_seconds = 3600 }, context) =>
    withTree(context, async (tree) => {
      const wait = { runIds: run_ids, until, timeoutMs: timeout_seconds * 1000 };
      const { runs, timedOut } = await tree.wait(wait, context.signal);
      const end = timedOut ? `\n\n[after ${timeout_seconds} s not all had ended]` : '';
      return succeeded(runsText(runs) + end);
    }),
});

const listRuns = defineTool({
  name: 'list_runs',
  description: 'Lists the runs that you started, with their states, last messages and artifacts.',
  kind: 'other',
  schema: z.object({}),
  title: () => 'List runs',
  run: (_input, context) => withTree(context, async (tree) => succeeded(runsText(await tree.list(context.signal)))),
});

const cancelRun = defineTool({
  name: 'cancel_run',
  description: 'Cancels a run that you started, and all that it started.',
  kind: 'other',
  schema: z.object({ run_id: runId }),
  title: ({ run_id }) => `Cancel run ${run_id}`,
  run: ({ run_id }, context) =>
    withTree(context, async (tree) => succeeded(`its state is ${(await tree.cancel(run_id, context.signal)).state}`)),
});

const sendMessage = defineTool({
  name: 'send_message',
  description:
    'Writes to another run of your tree: a run that you started, or "parent", the run that you work for. The run reads the message after its present work. A run that you started continues with the message after its end. Do not wait for an answer: answers arrive as messages to you, after your turn.',
  kind: 'other',
  schema: z.object({ run_id: runId, message: z.string().min(1) }),
  title: ({ run_id }) => `Write to run ${run_id}`,
  run: ({ run_id, message }, context) =>
    withTree(context, async (tree) => {
      if (run_id === 'parent' && tree.parent === undefined) return failedWith('this run has no parent');
      return succeeded(`sent (${await tree.send(run_id, message, context.signal)})`);
    }),
});

const below: readonly BuiltinTool[] = [startRun, awaitRuns, listRuns, cancelRun];

/** All tools that work on other runs. */
export const treeTools: readonly BuiltinTool[] = [...below, sendMessage];

/** Returns true if the run gets the tool. */
export function isOffered(tool: BuiltinTool, tree: Pick<RunTree, 'maxLive' | 'parent'> | undefined): boolean {
  if (below.includes(tool)) return tree?.maxLive !== undefined;
  return tool !== sendMessage || tree?.maxLive !== undefined || tree?.parent !== undefined;
}
