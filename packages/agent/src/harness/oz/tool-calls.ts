import { basename } from 'node:path';
import { parseUntrusted } from '@runyard/contract/wire/parse-untrusted';
import { plainMessage } from '@runyard/contract/wire/plain-message';
import { firstPart } from '@runyard/contract/wire/shorten';
import { actionId } from '../../acp/action-id.ts';
import type { RunKept } from '../../commands/kept-output.ts';
import { runCommand } from '../../commands/run-command.ts';
import { askFirst, refusalText, reportDenied } from './ask-first.ts';
import type { StepCall } from './model-step.ts';
import { commandEnd, commandOutput, type TurnVoice } from './session.ts';
import { type BuiltinTool, failedWith, type ToolContext, type ToolOutcome } from './tools/tool.ts';
import { builtinTools, mayPlan } from './tools/tool-list.ts';

/** The context of the calls of a turn, from which the context of one call is made. `runKept`: absent if no outputs are kept. */
export type CallContext = Omit<ToolContext, 'onOutput' | 'runKept'> & { readonly runKept?: RunKept | undefined };

/**
 * Returns the reasons why a tool does not accept this input, as sentences for the model and for people who read the conversation.
 * Returns undefined if the schema accepts the input, or the tool belongs to an MCP server, which has its own schema. If the model's
 * input was not JSON, `input` is the text that the model wrote.
 */
function inputFault({ name, schema, inputSchema }: BuiltinTool, input: unknown): string | undefined {
  if (typeof input === 'string') return `The input of ${name} is not a JSON object. It may have been cut off.`;
  if (inputSchema !== undefined) return undefined;
  const checked = parseUntrusted(schema, input, { error: plainMessage });
  if (checked.success) return undefined;
  const faults = checked.error.issues.map(({ path, message }) => `${path.map(String).join('.') || 'it'} ${message}`);
  return `The input of ${name} is not accepted: ${faults.join('; ')}.`;
}

/**
 * Runs one tool call of the model and reports its progress. For an invalid call, returns a failed result for the model and throws no error.
 */
export async function runToolCall(call: StepCall, context: CallContext, voice: TurnVoice): Promise<ToolOutcome> {
  const { toolCallId } = call;
  const tool = builtinTools.get(call.toolName) ?? context.mcpTools?.get(call.toolName);
  const isForbidden = context.isPlanning === true && tool !== undefined && !mayPlan(tool);
  const valid = call.invalid === undefined && tool !== undefined && !isForbidden;
  const asks = valid && tool.acts !== undefined && context.approvals.policy !== 'auto-approve';
  await voice.update({
    sessionUpdate: 'tool_call',
    toolCallId,
    name: call.toolName,
    kind: tool?.kind ?? 'other',
    title: valid ? firstPart(tool.title(call.input), 200) : basename(call.toolName),
    status: asks ? 'pending' : 'in_progress',
    rawInput: call.input,
  });
  if (!valid) {
    const reason = isForbidden
      ? `${tool.name} is refused: the turn has the mode plan, in which nothing may change`
      : ((tool && inputFault(tool, call.input)) ?? call.invalid ?? `there is no tool ${call.toolName}`);
    const outcome = failedWith(firstPart(reason, 4_000));
    await voice.update(textResult(toolCallId, outcome));
    return outcome;
  }
  let approvalMessage: string | undefined;
  if (asks && tool.acts) {
    const planned = {
      id: toolCallId,
      name: tool.name,
      category: tool.acts.category,
      input: call.input,
      title: tool.title(call.input),
    };
    const verdict = await context.waiting((beforeAsked) =>
      askFirst({ ...planned, beforeAsked }, context.approvals, context.signal),
    );
    if (verdict !== undefined && verdict.decision !== 'approve') {
      const outcome = failedWith(refusalText(verdict));
      await reportDenied(voice, toolCallId, outcome.text);
      return outcome;
    }
    approvalMessage = verdict?.message;
    await voice.update({ sessionUpdate: 'tool_call_update', toolCallId, status: 'in_progress' });
  }
  let said: Promise<void> = Promise.resolve();
  const onOutput = (text: string) => {
    said = voice.update(commandOutput(toolCallId, text));
  };
  /** Marks the time in which a tool waits for a person, because this time does not count in the duration of the action. */
  const waiting: ToolContext['waiting'] = async (work) => {
    const tell = (waits: boolean) =>
      voice.update({ sessionUpdate: 'tool_call_update', toolCallId, _meta: { runyard: { waits } } });
    await tell(true);
    try {
      return await context.waiting(work);
    } finally {
      await tell(false);
    }
  };
  const command = { actionId: actionId(toolCallId), title: firstPart(tool.title(call.input), 200) };
  const runKept: ToolContext['runKept'] = (options) => (context.runKept ?? runCommand)(options, command);
  const outcome = await tool.run(call.input, { ...context, onOutput, waiting, runKept });
  await said;
  // The search tool also runs a command, but its result is reported as text.
  await voice.update(
    outcome.command === undefined ? textResult(toolCallId, outcome) : commandEnd(toolCallId, outcome.command),
  );
  if (approvalMessage === undefined) return outcome;
  return { ...outcome, text: `${outcome.text}\n[The user approved this with the message: ${approvalMessage}]` };
}

function textResult(toolCallId: string, outcome: ToolOutcome) {
  return {
    sessionUpdate: 'tool_call_update' as const,
    toolCallId,
    status: outcome.failed ? ('failed' as const) : ('completed' as const),
    content: [{ type: 'content' as const, content: { type: 'text' as const, text: outcome.text } }],
  };
}
