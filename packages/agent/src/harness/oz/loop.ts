import type { AgentModel } from '@runyard/contract/agent-protocol';
import { backoffMs, delay } from '@runyard/contract/backoff';
import type { BuiltinVerdict } from '../../acp/outcome.ts';
import type { Verdict } from '../../approvals/approval-request.ts';
import type { Approvals } from '../../approvals/approvals.ts';
import { imageLimits } from '../../images/images.ts';
import { aboutTree } from '../../run-tree/prompt-text.ts';
import type { ServiceConnection } from '../../service/connection.ts';
import { forgetOldImages, type TurnImage, userContent } from './conversation-images.ts';
import { instructions } from './instructions.ts';
import { type CallResult, memoryText, type OpenCalls, readMemory } from './memory.ts';
import { type ModelFailure, modelFailure } from './model-failure.ts';
import { modelStep, type PartialAnswer, type StepAnswer, type StepCall, toolMessage } from './model-step.ts';
import { type ModelAccess, openModel } from './providers.ts';
import type { Engine, TurnEnd, TurnVoice } from './session.ts';
import { notAnswered, runStepCalls } from './step-calls.ts';
import type { ToolContext } from './tools/tool.ts';
import { toolSetOf } from './tools/tool-list.ts';

// The SDK prints warnings about models to the console unless told otherwise.
(globalThis as { AI_SDK_LOG_WARNINGS?: boolean }).AI_SDK_LOG_WARNINGS = false;

export interface LoopOptions
  extends Pick<ToolContext, 'workspace' | 'env' | 'backpressure' | 'reportArtifact' | 'handoff' | 'tree'> {
  approvals: Approvals;
  model: AgentModel;
  reasoningLevel?: string | undefined;
  basePrompt?: string | undefined;
  connection: ServiceConnection;
  /** The conversation as `remember` was given it by an earlier engine; one that cannot be read is as good as none. */
  memory?: string | undefined;
  /** Keeps the conversation at the end of each turn, and before a person is asked (`requestId`). */
  remember?: (memory: string, requestId?: string) => Promise<void>;
  /** Model requests in one turn. */
  maxSteps?: number;
  /** Longest silence of the model; there is no limit to how long it may take in all. */
  stallTimeoutMs?: number;
  retry?: { tries: number; firstMs: number; maxMs: number };
  /** Tells the model's place; tests put a model of their own here. */
  open?: () => Promise<ModelAccess>;
}

/** A model request that was given up. */
class ModelGaveUp extends Error {
  readonly failure: ModelFailure;
  readonly tries: number;
  constructor(failure: ModelFailure, tries: number) {
    super(failure.reason);
    this.failure = failure;
    this.tries = tries;
  }
}

/** The engine with a language model. The conversation lives as long as the engine: a further prompt continues it. */
export function modelEngine(options: LoopOptions): Engine {
  const { model, maxSteps = 200, stallTimeoutMs = 300_000 } = options;
  const retry = options.retry ?? { tries: 6, firstMs: 1_000, maxMs: 30_000 };
  const { messages, ...earlier } = readMemory(options.memory);
  /** Calls of the last message that have no results in the history, because one of them waits for a person. */
  let open: OpenCalls | undefined = earlier.open;
  const access = (
    options.open ??
    (() => openModel(model, { connection: options.connection, reasoningLevel: options.reasoningLevel, stallTimeoutMs }))
  )();
  access.catch(() => {});

  /** One answer of the model, asked for again where that may help. */
  async function answer(voice: TurnVoice, signal: AbortSignal): Promise<StepAnswer> {
    for (let tries = 1; ; tries++) {
      const partial: PartialAnswer = { text: '' };
      try {
        const { workspace, basePrompt, tree } = options;
        const about = tree === undefined ? '' : aboutTree(tree, 'tools');
        const request = {
          instructions: instructions(workspace, basePrompt, about),
          messages,
          tools: toolSetOf(tree),
          signal,
        };
        return await modelStep(await access, request, voice, partial);
      } catch (error) {
        if (signal.aborted) {
          if (partial.text !== '') messages.push({ role: 'assistant', content: partial.text });
          throw error;
        }
        const failure = modelFailure(error);
        if (!failure.retryable || tries >= retry.tries) throw new ModelGaveUp(failure, tries);
        // A provider may ask for hours; a run does not wait longer than two minutes for one try.
        const waitMs = Math.max(
          backoffMs({ firstMs: retry.firstMs, longestMs: retry.maxMs }, tries),
          Math.min(failure.retryAfterMs ?? 0, 120_000),
        );
        await voice.think(
          `[the model did not answer: ${failure.reason}; trying again in ${(waitMs / 1000).toFixed(1)} s]\n`,
        );
        await delay(waitMs, signal);
      }
    }
  }

  const remember = async () => options.remember?.(memoryText({ messages, open }), open?.requestId);

  /** Runs the calls of a step. However that ends, the history stays whole, or goes on where a person was asked. */
  async function runCalls(
    calls: readonly StepCall[],
    results: Map<string, CallResult>,
    voice: TurnVoice,
    signal: AbortSignal,
    given?: Verdict,
  ): Promise<void> {
    const { workspace, env, backpressure, reportArtifact, handoff, tree, approvals } = options;
    const context = { workspace, env, backpressure, reportArtifact, handoff, tree, approvals, signal };
    const onOpen = (asked: OpenCalls) => {
      open = asked;
      return remember();
    };
    const onAnswered = () => {
      open = undefined;
    };
    try {
      await runStepCalls(calls, results, { context, voice, given, onOpen, onAnswered });
    } finally {
      if (open === undefined) messages.push(toolMessage(calls, results));
    }
  }

  /** Goes on with the call that an earlier turn asked about. False: what was decided is not about it, so it was not done. */
  async function takeUp({ requestId, calls, results }: OpenCalls, voice: TurnVoice, signal: AbortSignal) {
    const decided = await options.approvals.takeUp(requestId);
    open = undefined;
    const soFar = new Map(results);
    if (decided !== undefined) {
      await runCalls(calls, soFar, voice, signal, decided === 'undecided' ? undefined : decided);
      return true;
    }
    const asked = calls.find(({ toolCallId }) => !soFar.has(toolCallId));
    if (asked) soFar.set(asked.toolCallId, { text: notAnswered, failed: true });
    messages.push(toolMessage(calls, soFar));
    return false;
  }

  /** What the user says, behind all that the model has done. */
  function hear(text: string, files: readonly string[], images: readonly TurnImage[]): void {
    const said = [text, ...(files.length === 0 ? [] : [`Files that came with it:\n- ${files.join('\n- ')}`])];
    messages.push({ role: 'user', content: userContent(said.filter((part) => part !== '').join('\n\n'), images) });
    forgetOldImages(messages, imageLimits(model).maxTogether);
  }

  return async ({ prompt, promptWithAnswer, files, images, voice, signal }) => {
    let acted = false;
    try {
      const tookUp = open !== undefined && (await takeUp(open, voice, signal));
      acted = tookUp;
      const text = tookUp ? prompt : promptWithAnswer;
      if (!tookUp || text !== '' || files.length > 0) hear(text, files, images);
      signal.throwIfAborted();
      for (let step = 0; step < maxSteps; step++) {
        const { messages: said, calls, finishReason } = await answer(voice, signal);
        messages.push(...said.filter((message) => message.role !== 'tool'));
        if (calls.length === 0) return end(finishReason);
        acted = true;
        await runCalls(calls, new Map(), voice, signal);
        signal.throwIfAborted();
      }
      return { stopReason: 'max_turn_requests', verdict: { success: true, message: '' } };
    } catch (error) {
      if (signal.aborted) return { stopReason: 'cancelled', verdict: { success: false, message: 'cancelled' } };
      if (error instanceof ModelGaveUp) return { stopReason: 'end_turn', verdict: gaveUpVerdict(model, error, acted) };
      throw error;
    } finally {
      await remember();
    }
  };
}

function end(finishReason: string): TurnEnd {
  const verdict = { success: true, message: '' };
  switch (finishReason) {
    case 'length':
      return { stopReason: 'max_tokens', verdict };
    case 'content-filter':
      return { stopReason: 'refusal', verdict };
    default:
      return { stopReason: 'end_turn', verdict };
  }
}

/**
 * A retryable code makes the platform play the whole run again. Once the agent has acted that would do things twice, so
 * the failure is then one that is not retried.
 */
function gaveUpVerdict(model: AgentModel, { failure, tries }: ModelGaveUp, acted: boolean): BuiltinVerdict {
  const answered = failure.status === undefined ? 'did not finish its answer' : `answered ${failure.status}`;
  const after = tries === 1 ? '' : ` after ${tries} tries`;
  const message = `The model ${model.id} (${model.protocol}) ${answered}${after}: ${failure.reason}. ${failure.advice}`;
  return { success: false, message, code: failure.retryable && acted ? 'agent_process_failed' : failure.code };
}
