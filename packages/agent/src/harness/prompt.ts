import { pathToFileURL } from 'node:url';
import type { ContentBlock } from '@agentclientprotocol/sdk';
import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import type { RunMode } from '@runyard/contract/runs/message-origin';
import { formatBytes } from '@runyard/contract/wire/byte-size';
import { planOnly } from '../acp/plan-mode.ts';
import { decisionText } from '../approvals/decision-text.ts';
import { aboutResult } from '../results/prompt-text.ts';
import { aboutTree, orchestrateMode } from '../run-tree/prompt-text.ts';
import type { WrittenAttachment } from '../workspace/attachments.ts';
import { answerMeta } from './oz/agent.ts';
import { type HarnessOfTask, harnessProfile } from './profile.ts';

/** Returns the message with the text that the run mode adds to it. */
export function promptText(task: AgentTask, message: string, mode: RunMode | undefined): string {
  if (mode === 'plan') return `${planOnly}\n\n${message}`;
  const mayStartRuns = capabilitiesOf(task).readsAdvice && task.agent_config.child_runs?.enabled !== false;
  const orchestrates = mode === 'orchestrate' && mayStartRuns;
  return orchestrates ? `${orchestrateMode}\n\n${message}` : message;
}

/** Returns the first message of an execution: the decision about a request of an earlier sandbox, then the prompt. */
export function firstMessage({ decision, prompt }: AgentTask): string {
  const answer = decision === undefined ? '' : decisionText(decision.request, decision);
  return [answer, prompt].filter((part) => part !== '').join('\n\n');
}

/** Returns the prompt for a message that a person sends to a run whose setup has failed. */
export function debugText(task: AgentTask, failure: string, message: string): string {
  if (!capabilitiesOf(task).readsAdvice) return message;
  return `The setup of this sandbox failed:\n\n${failure}\n\nThe sandbox is unchanged since the failure. Do not work on the task itself now. The user says:\n\n${message}`;
}

const capabilitiesOf = (task: AgentTask) => harnessProfile(task).capabilities;

/** Returns the record of earlier executions, as text that comes before the first prompt. */
function conversationSoFar(task: AgentTask, restored: boolean): string[] {
  if (task.conversation?.kind !== 'text' || !capabilitiesOf(task).readsAdvice) return [];
  const soFar = `You continue a conversation whose sandbox is gone. This record shows what was said and done so far. It is not a list of instructions to repeat:\n\n<conversation>\n${task.conversation.text}\n</conversation>`;
  if (task.loss !== undefined) return [soFar];
  return [
    `${soFar}\n\n${restored ? 'The files of its workspace are there.' : 'Files of the earlier workspace may be missing.'} The user now says:`,
  ];
}

/** Returns the text about other runs, for a harness whose own instructions do not include it. */
function aboutRuns(task: AgentTask): string[] {
  const about = capabilitiesOf(task).ownInstructions
    ? ''
    : aboutTree({ maxLive: task.child_runs?.max_live, parent: task.parent_run }, 'commands');
  return about === '' ? [] : [about];
}

/** Returns the text about the result of the run, for a harness whose own instructions do not include it. */
function aboutOwnResult(task: AgentTask): string[] {
  const { ownInstructions, mcpServers } = capabilitiesOf(task);
  const about = ownInstructions ? '' : aboutResult(task, mcpServers === 'harness' ? 'tool' : 'file');
  return about === '' ? [] : [about];
}

/** Returns the prompt of a turn for a harness that was started again in the same sandbox and could not load the earlier session. */
export function promptAfterRestart(task: AgentTask, record: string, prompt: string): string {
  const earlier = task.conversation?.kind === 'text' ? [task.conversation.text] : [];
  const conversation = [...earlier, record].filter((part) => part !== '').join('\n\n');
  const about = [...basePrompt(task), ...aboutRuns(task), ...aboutOwnResult(task)];
  if (conversation === '') return [...about, prompt].join('\n\n');
  return [
    ...about,
    `You continue a conversation whose process has ended. This record shows what was said and done so far. It is not a list of instructions to repeat:\n\n<conversation>\n${conversation}\n</conversation>\n\nThe files of the workspace are there. The user now says:`,
    prompt,
  ].join('\n\n');
}

/** Returns the base prompt, for a harness whose own instructions do not include it. */
function basePrompt(task: AgentTask): string[] {
  const base = capabilitiesOf(task).ownInstructions ? undefined : task.agent_config.base_prompt;
  return base === undefined || base.trim() === '' ? [] : [base];
}

/**
 * Returns the first prompt as ACP content. Attachments are links into the workspace. For a harness that needs these texts, the base
 * prompt, the text about other runs and the record of earlier executions come before the prompt.
 */
export function promptContent(
  task: AgentTask,
  attachments: readonly WrittenAttachment[],
  { restored, loaded }: { restored: boolean; loaded: boolean },
): ContentBlock[] {
  const aboutRun = [
    ...basePrompt(task),
    ...aboutRuns(task),
    ...aboutOwnResult(task),
    ...conversationSoFar(task, restored),
  ];
  const lost = capabilitiesOf(task).readsAdvice ? lossText(task, restored) : [];
  const before = [...(loaded ? [] : aboutRun), ...lost];
  const links = attachedFiles(task, attachments);
  if (!capabilitiesOf(task).continuesDecidedActions || task.decision === undefined) {
    const parts = [...before, promptText(task, firstMessage(task), task.mode)];
    return [{ type: 'text', text: parts.join('\n\n') }, ...links];
  }
  // The decision is a separate block, because the harness skips this block if it continues the action that the decision is about.
  const decision = decisionText(task.decision.request, task.decision);
  const answer = task.prompt === '' ? promptText(task, decision, task.mode) : decision;
  const prompt = task.prompt === '' ? [] : [promptText(task, task.prompt, task.mode)];
  const textBlock = (text: string): ContentBlock => ({ type: 'text', text });
  return [
    ...before.map(textBlock),
    { type: 'text', text: answer, _meta: { [answerMeta]: true } },
    ...prompt.map(textBlock),
    ...links,
  ];
}

/** Returns attached files as links into the workspace, or as a text with their paths if the harness does not accept links. */
export function attachedFiles(task: HarnessOfTask, attachments: readonly WrittenAttachment[]): ContentBlock[] {
  if (attachments.length === 0) return [];
  if (!harnessProfile(task).capabilities.takesFileLinks) {
    const lines = attachments.map(({ path, mimeType, size }) => `- ${path} (${mimeType}, ${formatBytes(size)})`);
    return [{ type: 'text', text: `Attached files:\n${lines.join('\n')}` }];
  }
  return attachments.map((attachment) => ({
    type: 'resource_link',
    uri: pathToFileURL(attachment.path).href,
    name: attachment.name,
    mimeType: attachment.mimeType,
    size: attachment.size,
  }));
}

/**
 * Returns the text for a model whose machine was lost in the middle of the turn. The text describes the state of the files, the actions
 * after that state, and the work that may have been lost.
 */
function lossText({ loss, attachments }: Pick<AgentTask, 'loss' | 'attachments'>, restored: boolean): string[] {
  if (loss === undefined) return [];
  const { kept_at, record } = loss;
  const files = restored
    ? `The files of the workspace are as they were kept${kept_at === undefined ? '' : ` at ${kept_at}`}. Later changes of files are lost.`
    : 'No files were saved: the workspace was set up again, and all changes of files are lost.';
  const done =
    record === undefined
      ? ''
      : `\n\nThis record shows what was said and done after that. It is not a list of instructions to repeat. Its changes of files may be missing. What it did elsewhere, such as a push, a message or a request, has happened: look before you do it again.\n\n<lost_work>\n${record}\n</lost_work>`;
  const earlier = restored && attachments.some((file) => file.earlier === true);
  const attached = earlier ? '\n\nThe files that came with the task are in attachments/.' : '';
  return [
    `The machine on which you worked on this task was lost in the middle of your turn, and you continue in a new sandbox. ${files} Processes that you had started have ended.${done}${attached}\n\nContinue the task and finish it. Do not repeat work that is done. The task:`,
  ];
}
