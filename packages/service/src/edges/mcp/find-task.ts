/** Finds the task that the arguments of a tool name, and hands work back to its run. */
import type { CallToolResult } from '@modelcontextprotocol/server';
import type { FactoryTask } from '@runyard/contract/factories/factory-tasks';
import { apiPrefix } from '@runyard/contract/wire/route';
import type { CallOperation } from './operations.ts';
import { failure, trusted } from './texts.ts';
import type { Json } from './tool.ts';

const maxTaskBytes = 4 * 1024 * 1024;

/** The named task, or the message for the model. */
export type FoundTask = { readonly task: FactoryTask } | { readonly message: string };

/** Finds a task in the factories of the caller's team, with the rights of the caller. */
export async function findTask(call: CallOperation, given: Json): Promise<FoundTask> {
  const reference = [given.factory_task_uid, given.reference, given.run_id].find((each) => each !== undefined);
  if (typeof reference !== 'string' || reference === '')
    return { message: 'factory_task_uid, reference or run_id: one of them is required, as a string' };
  const url = `${apiPrefix}/factory-tasks/find?${new URLSearchParams({ reference })}`;
  const answer = await call({ method: 'GET', url }, maxTaskBytes);
  if (answer.kind === 'answer') return { task: JSON.parse(answer.bytes.toString('utf8')) as FactoryTask };
  return { message: answer.kind === 'refused' ? answer.message : 'The task is too large to be read.' };
}

/** Fills the path parameters of a tool, which are `names`, with those of a task. */
export function withTask(given: Json, task: FactoryTask, names: readonly string[]): Json {
  const values: Json = {
    factory_uid: task.factory_uid,
    task_uid: task.uid,
    run_id: task.current_run?.run_id ?? task.run_id,
  };
  return { ...given, ...Object.fromEntries(names.map((name) => [name, values[name]])) };
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value.trim() : '');

/**
 * Hands a task back to the foreman: sends the note, the branch and the pull request to the run of the task, and then sets the stage if the
 * caller suggests one.
 */
export async function handBack(call: CallOperation, given: Json): Promise<CallToolResult> {
  const found = await findTask(call, given);
  if ('message' in found) return failure(found.message);
  const { task } = found;
  const note = textOf(given.note);
  if (note === '') return failure('note: is required');
  const lines = [
    note,
    ...(textOf(given.branch) ? [`Branch: ${textOf(given.branch)}`] : []),
    ...(textOf(given.pr_url) ? [`Pull request: ${textOf(given.pr_url)}`] : []),
  ];
  const runId = task.current_run?.run_id ?? task.run_id;
  const sent = await call(
    {
      method: 'POST',
      url: `${apiPrefix}/agent/runs/${runId}/followups`,
      body: { message: lines.join('\n') },
      ...(typeof given.idempotency_key === 'string' ? { idempotencyKey: given.idempotency_key } : {}),
    },
    maxTaskBytes,
  );
  if (sent.kind === 'refused') return failure(sent.message);
  const stage = textOf(given.stage_hint);
  const moved =
    stage === ''
      ? undefined
      : await call(
          {
            method: 'PATCH',
            url: `${apiPrefix}/factory/${task.factory_uid}/tasks/${task.uid}`,
            body: { stage },
          },
          maxTaskBytes,
        );
  if (moved?.kind === 'refused') return failure(`The note was sent, but the stage was not changed: ${moved.message}`);
  const answer = { mode: 'handback', factory_task_uid: task.uid, run_id: runId, ...(stage ? { stage } : {}) };
  return { content: trusted(JSON.stringify(answer)), structuredContent: answer };
}
