import { basename } from 'node:path';
import { firstPart } from '@runyard/contract/shorten';
import { askFirst, refusalText, tellDenied } from './ask-first.ts';
import type { StepCall } from './model-step.ts';
import { commandEnd, commandOutput, type TurnVoice } from './session.ts';
import { failedWith, type ToolContext, type ToolOutcome } from './tools/tool.ts';
import { builtinTools } from './tools/tool-list.ts';

/** Runs one tool call of the model and tells its course. A call that cannot be run is told to the model, not thrown. */
export async function runToolCall(
  call: StepCall,
  context: Omit<ToolContext, 'onOutput'>,
  voice: TurnVoice,
): Promise<ToolOutcome> {
  const { toolCallId } = call;
  const tool = builtinTools.get(call.toolName);
  const valid = call.invalid === undefined && tool !== undefined;
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
    const outcome = failedWith(firstPart(call.invalid ?? `there is no tool ${call.toolName}`, 4_000));
    await voice.update(textResult(toolCallId, outcome));
    return outcome;
  }
  let words: string | undefined;
  if (asks && tool.acts) {
    const deed = {
      id: toolCallId,
      name: tool.name,
      category: tool.acts.category,
      input: call.input,
      title: tool.title(call.input),
    };
    const verdict = await context.waiting((beforeAsked) =>
      askFirst({ ...deed, beforeAsked }, context.approvals, context.signal),
    );
    if (verdict !== undefined && verdict.decision !== 'approve') {
      const outcome = failedWith(refusalText(verdict));
      await tellDenied(voice, toolCallId, outcome.text);
      return outcome;
    }
    words = verdict?.message;
    await voice.update({ sessionUpdate: 'tool_call_update', toolCallId, status: 'in_progress' });
  }
  let said: Promise<void> = Promise.resolve();
  const onOutput = (text: string) => {
    said = voice.update(commandOutput(toolCallId, text));
  };
  /** What a tool asks in the middle of its run: the person's time is not the action's. */
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
  const outcome = await tool.run(call.input, { ...context, onOutput, waiting });
  await said;
  // A search runs a command too, but shows its result as a whole.
  await voice.update(
    outcome.command === undefined ? textResult(toolCallId, outcome) : commandEnd(toolCallId, outcome.command),
  );
  if (words === undefined) return outcome;
  return { ...outcome, text: `${outcome.text}\n[The user, who approved this, says: ${words}]` };
}

function textResult(toolCallId: string, outcome: ToolOutcome) {
  return {
    sessionUpdate: 'tool_call_update' as const,
    toolCallId,
    status: outcome.failed ? ('failed' as const) : ('completed' as const),
    content: [{ type: 'content' as const, content: { type: 'text' as const, text: outcome.text } }],
  };
}
