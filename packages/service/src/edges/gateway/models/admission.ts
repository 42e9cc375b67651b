/** Decides whether a request of a run may be sent to a model. */
import { gatewayErrorHeader } from '@runyard/contract/agent/headers';
import type { ErrorCode } from '@runyard/contract/wire/errors';
import type { ModelTarget } from '../../../team/models/models.ts';
import type { RunTokenHolder } from '../../../team/usage/model-usage.ts';

/** Decides whether a request may be sent. Budgets and limits are enforced here, before anything is spent. */
export type Admission =
  | { readonly ok: true }
  | {
      readonly ok: false;
      readonly status: 400 | 401 | 403 | 429;
      readonly message: string;
      readonly retryAfterSeconds?: number;
      /** The error code with which the refusal ends the run; absent: the run continues. */
      readonly code?: ErrorCode;
    };

/** A checked request of a run. */
export interface CheckedModelRequest {
  /** UUID. The usage of the request is recorded under this UUID. */
  readonly requestId: string;
  /** `count` is free of charge and not recorded. */
  readonly kind: 'generate' | 'count';
  readonly target: ModelTarget;
  readonly bytes: number;
  /** Number of tokens of the prompt, estimated from the text of the request. */
  readonly promptTokens: number;
  /** Number of answers that the request asks for with its member `n` or `candidateCount`. */
  readonly answers: number;
  /** Aborts when the client disconnects or the service stops. */
  readonly signal: AbortSignal;
  /** Returns false if the run has ended since the request was checked. */
  isAtWork(): Promise<boolean>;
}

/** Decides about each checked request of a run. If the function throws, the answer is 500, and nothing is sent to the provider. */
export type AdmitModelRequest = (holder: RunTokenHolder, request: CheckedModelRequest) => Promise<Admission>;

/** Outcome of an admission. `requestId`: UUID under which the usage is recorded. */
export type AdmittedRequest = { readonly ok: true; readonly requestId: string } | Extract<Admission, { ok: false }>;

/** Returns the headers of the answer to a refused request. */
export function headersOfRefusal({
  code,
  retryAfterSeconds,
}: Pick<Extract<Admission, { ok: false }>, 'code' | 'retryAfterSeconds'>): Record<string, string> {
  return {
    // The client libraries of the providers do not send a request again after an answer with `x-should-retry: false`.
    ...(code === undefined ? {} : { 'x-should-retry': 'false', [gatewayErrorHeader]: code }),
    ...(retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) }),
  };
}
