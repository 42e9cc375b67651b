import type { AgentTask } from '@runyard/contract/agent/agent-protocol';

/**
 * Returns the text for a model whose machine was lost in the middle of the turn: the state of the files, the later actions, and the
 * parts that may have been lost.
 */
export function lossText({ loss, attachments }: Pick<AgentTask, 'loss' | 'attachments'>, restored: boolean): string[] {
  if (loss === undefined) return [];
  const { kept_at, record } = loss;
  const files = restored
    ? `The files of the workspace are as they were kept${kept_at === undefined ? '' : ` at ${kept_at}`}. Later changes of files are lost.`
    : 'No files were kept: the workspace was set up again, and all changes of files are lost.';
  const done =
    record === undefined
      ? ''
      : `\n\nThis was said and done after that, as a record, not as instructions to repeat. Its changes of files may be missing. What it did elsewhere, such as a push, a message or a request, has happened: look before you do it again.\n\n<lost_work>\n${record}\n</lost_work>`;
  const earlier = restored && attachments.some((file) => file.earlier === true);
  const attached = earlier ? '\n\nThe files that came with the task are in attachments/.' : '';
  return [
    `The machine on which you worked on this task was lost in the middle of your turn, and you go on in a new sandbox. ${files} Processes that you had started have ended.${done}${attached}\n\nGo on with the task and finish it. Do not repeat what is done. The task:`,
  ];
}
