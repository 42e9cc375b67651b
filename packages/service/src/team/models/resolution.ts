import type { AgentModel } from '@runyard/contract/agent/agent-protocol';

/** A model with which runs can be created. `agentModel` is the value for `AgentTask.harness.model`; absent for `runbook`. */
export interface ResolvedModel {
  readonly id: string;
  readonly agentModel?: AgentModel;
}

/**
 * `message`: a sentence for the caller that also says what to do. `unknown` and `not_configured`: 400 `invalid_request`; `disabled`: 403
 * `feature_not_available`. `outage`: 503; the model exists, and will work again later.
 */
export type ModelResolution =
  | { readonly ok: true; readonly model: ResolvedModel }
  | {
      readonly ok: false;
      readonly reason: 'unknown' | 'not_configured';
      readonly message: string;
      readonly suggestions: string[];
      /** True if the public service may have this model, so a definition that names the model is kept. */
      readonly isLacking: boolean;
    }
  | { readonly ok: false; readonly reason: 'disabled'; readonly message: string }
  | {
      readonly ok: false;
      readonly reason: 'outage';
      readonly message: string;
      readonly model: ResolvedModel;
      readonly retryAfterSeconds: number;
    };

/**
 * `unreachable`: the run's model is unknown, because the model's endpoint does not list its models; the run ends with
 * `resource_unavailable`.
 */
export type TaskModelResolution =
  | ModelResolution
  | { readonly ok: false; readonly reason: 'unreachable'; readonly message: string };
