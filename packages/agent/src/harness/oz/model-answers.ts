import type { AgentModel } from '@runyard/contract/agent/agent-protocol';
import { backoffMs, delay } from '@runyard/system/backoff';
import type { BuiltinVerdict } from '../../acp/outcome.ts';
import { type ModelFailure, modelFailure } from './model-failure.ts';
import { modelStep, type PartialAnswer, type StepAnswer } from './model-step.ts';
import type { ModelAccess } from './providers.ts';
import type { TurnVoice } from './session.ts';

export interface ModelRetry {
  readonly tries: number;
  readonly firstMs: number;
  readonly maxMs: number;
}

/** Longest time that the agent waits for a provider's `Retry-After`, because a provider may ask for hours. */
const longestRetryAfterMs = 120_000;

/** Thrown if a request to the model has failed and is not repeated again. */
export class ModelGaveUp extends Error {
  override name = 'ModelGaveUp';
  readonly failure: ModelFailure;
  readonly tries: number;
  constructor(failure: ModelFailure, tries: number) {
    super(failure.reason);
    this.failure = failure;
    this.tries = tries;
  }
}

/**
 * Returns one answer of the model. Repeats a request that failed if a repetition may succeed. Throws `ModelGaveUp`, or the reason of an
 * aborted signal. If the answer is aborted, `onAborted` gets the text that had already arrived.
 */
export async function answerOfModel(
  access: Promise<ModelAccess>,
  request: Parameters<typeof modelStep>[1],
  voice: TurnVoice,
  retry: ModelRetry,
  onAborted: (text: string) => void,
): Promise<StepAnswer> {
  const { signal } = request;
  for (let tries = 1; ; tries++) {
    const partial: PartialAnswer = { text: '' };
    try {
      return await modelStep(await access, request, voice, partial);
    } catch (error) {
      if (signal.aborted) {
        if (partial.text !== '') onAborted(partial.text);
        throw error;
      }
      const failure = modelFailure(error);
      if (!failure.retryable || tries >= retry.tries) throw new ModelGaveUp(failure, tries);
      const waitMs = Math.max(
        backoffMs({ firstMs: retry.firstMs, longestMs: retry.maxMs }, tries),
        Math.min(failure.retryAfterMs ?? 0, longestRetryAfterMs),
      );
      await voice.think(
        `[the model did not answer: ${failure.reason}; trying again in ${(waitMs / 1000).toFixed(1)} s]\n`,
      );
      await delay(waitMs, signal);
    }
  }
}

/**
 * Returns the verdict of a turn that failed with `ModelGaveUp`. If the agent has already run actions, the verdict has a code that the
 * platform does not retry, because a retry would run the whole run again and repeat these actions.
 */
export function gaveUpVerdict(model: AgentModel, { failure, tries }: ModelGaveUp, acted: boolean): BuiltinVerdict {
  if (failure.retried) {
    const message = `The model ${model.id} cannot be used: ${failure.reason}. ${failure.advice}`;
    return { success: false, message, code: failure.code, retried: true };
  }
  const answered = failure.status === undefined ? 'did not finish its answer' : `answered ${failure.status}`;
  const after = tries === 1 ? '' : ` after ${tries} tries`;
  const message = `The model ${model.id} (${model.protocol}) ${answered}${after}: ${failure.reason}. ${failure.advice}`;
  const ofStream = failure.status === undefined ? 'agent_stream_network_error' : 'agent_stream_failure';
  return { success: false, message, code: failure.retryable && acted ? ofStream : failure.code };
}
