import { pathToFileURL } from 'node:url';
import type { ContentBlock } from '@agentclientprotocol/sdk';
import type { AgentTask } from '@runyard/contract/agent-protocol';
import type { RunMode } from '@runyard/contract/run-request';
import { planOnly } from '../acp/plan-mode.ts';
import { decisionText } from '../approvals/decision-text.ts';
import { aboutTree, orchestrateMode } from '../run-tree/prompt-text.ts';
import type { WrittenAttachment } from '../workspace/attachments.ts';
import { answerMeta } from './oz/agent.ts';
import { isBuiltin } from './start-harness.ts';

/** A prompt with what its mode asks for. The runbook orchestrates nothing: it decides nothing. */
export function promptText(task: AgentTask, message: string, mode: RunMode | undefined): string {
  if (mode === 'plan') return `${planOnly}\n\n${message}`;
  if (isRunbook(task)) return message;
  // Where the configuration forbids it there is nothing to orchestrate.
  const orchestrates = mode === 'orchestrate' && task.agent_config.child_runs?.enabled !== false;
  return orchestrates ? `${orchestrateMode}\n\n${message}` : message;
}

/** What is said first in an execution: what was decided about a request of an earlier sandbox, then the prompt. */
export function firstMessage({ decision, prompt }: AgentTask): string {
  const words = decision === undefined ? '' : decisionText(decision.request, decision);
  return [words, prompt].filter((part) => part !== '').join('\n\n');
}

/** A message for a sandbox whose setup failed. */
export function debugText(task: AgentTask, failure: string, message: string): string {
  if (isRunbook(task)) return message;
  return `The setup of this sandbox failed:\n\n${failure}\n\nThe sandbox is as the failure left it, and the task itself is not to be worked on now. The user says:\n\n${message}`;
}

const isRunbook = (task: AgentTask): boolean => isBuiltin(task) && task.harness.model === undefined;

/** The record of earlier executions, in front of the first prompt. The runbook would play its commands again. */
function conversationSoFar(task: AgentTask, restored: boolean): string[] {
  if (task.conversation?.kind !== 'text' || isRunbook(task)) return [];
  return [
    `You go on with a conversation whose sandbox is gone. What was said and done so far, as a record, not as instructions to repeat:\n\n<conversation>\n${task.conversation.text}\n</conversation>\n\n${restored ? 'The files of its workspace are there.' : 'Files of the earlier workspace may be missing.'} The user now says:`,
  ];
}

/** For harnesses that reach other runs by a command; the built-in loop has it in its instructions. */
function aboutRuns(task: AgentTask): string[] {
  const about = isBuiltin(task)
    ? ''
    : aboutTree({ maxLive: task.child_runs?.max_live, parent: task.parent_run }, 'commands');
  return about === '' ? [] : [about];
}

/** The prompt of a turn for a harness that was started again in its sandbox and could not load its session. */
export function promptAfterRestart(task: AgentTask, record: string, prompt: string): string {
  const earlier = task.conversation?.kind === 'text' ? [task.conversation.text] : [];
  const conversation = [...earlier, record].filter((part) => part !== '').join('\n\n');
  const about = [...basePrompt(task), ...aboutRuns(task)];
  if (conversation === '') return [...about, prompt].join('\n\n');
  return [
    ...about,
    `You go on with a conversation whose process has ended. What was said and done so far, as a record, not as instructions to repeat:\n\n<conversation>\n${conversation}\n</conversation>\n\nThe files of the workspace are there. The user now says:`,
    prompt,
  ].join('\n\n');
}

/** For harnesses that have no place for it. */
function basePrompt(task: AgentTask): string[] {
  const base = isBuiltin(task) ? undefined : task.agent_config.base_prompt;
  return base === undefined || base.trim() === '' ? [] : [base];
}

/** The first prompt as ACP content: attachments are links into the workspace, a base prompt goes before where the harness has no place for it. */
export function promptContent(
  task: AgentTask,
  attachments: readonly WrittenAttachment[],
  { restored, loaded }: { restored: boolean; loaded: boolean },
): ContentBlock[] {
  const aboutRun = [...basePrompt(task), ...aboutRuns(task), ...conversationSoFar(task, restored)];
  const before = loaded ? [] : aboutRun;
  const links = fileLinks(attachments);
  if (!isBuiltin(task) || task.decision === undefined) {
    const parts = [...before, promptText(task, firstMessage(task), task.mode)];
    return [{ type: 'text', text: parts.join('\n\n') }, ...links];
  }
  // In a block of its own: the built-in harness may take up by itself what it had asked.
  const words = decisionText(task.decision.request, task.decision);
  const answer = task.prompt === '' ? promptText(task, words, task.mode) : words;
  const prompt = task.prompt === '' ? [] : [promptText(task, task.prompt, task.mode)];
  const text = (said: string): ContentBlock => ({ type: 'text', text: said });
  return [
    ...before.map(text),
    { type: 'text', text: answer, _meta: { [answerMeta]: true } },
    ...prompt.map(text),
    ...links,
  ];
}

/** Files of the workspace as links. */
export function fileLinks(attachments: readonly WrittenAttachment[]): ContentBlock[] {
  return attachments.map((attachment) => ({
    type: 'resource_link',
    uri: pathToFileURL(attachment.path).href,
    name: attachment.name,
    mimeType: attachment.mimeType,
    size: attachment.size,
  }));
}
