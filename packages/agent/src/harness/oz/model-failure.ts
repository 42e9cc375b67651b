import { gatewayErrorHeader } from '@runyard/contract/agent/headers';
import { ErrorCode } from '@runyard/contract/wire/errors';
import { firstPart } from '@runyard/contract/wire/shorten';
import { retryAfterMs } from '@runyard/system/backoff';
import { APICallError } from 'ai';
import { parseProblem } from '../../service/problem.ts';
import { isStatusText, providerText } from './provider-text.ts';

/** The reason why a request to the model failed, and whether the same request may succeed later. */
export interface ModelFailure {
  /** HTTP status of the answer; undefined if there was no answer or the connection broke. */
  status: number | undefined;
  retryable: boolean;
  /** True: the gateway has already repeated the request, or a repetition cannot help. */
  retried?: true;
  retryAfterMs: number | undefined;
  /** The error message of the provider or the connection, at most 1,000 characters. */
  reason: string;
  code: ErrorCode;
  advice: string;
}

/** Names of the SDK's errors which mean that the request itself is wrong. */
const ourFault =
  /^AI_(InvalidPrompt|InvalidArgument|UnsupportedFunctionality|LoadAPIKey|LoadSetting|NoSuchModel|InvalidMessageRole|MessageConversion)Error$/;

/**
 * Returns true for errors of the SDK about an answer that does not have the format of the API. Such a request is not repeated, because it
 * would get the same answer.
 */
const hasOtherForm = ({ name, message }: Error): boolean =>
  name === 'AI_TypeValidationError' || (name === 'AI_InvalidResponseDataError' && !message.includes('stream ended'));

/** Converts an error of the SDK, a provider or the connection into a `ModelFailure`. */
export function modelFailure(error: unknown): ModelFailure {
  if (!APICallError.isInstance(error)) {
    if (error instanceof Error && hasOtherForm(error)) {
      return {
        status: undefined,
        retryable: false,
        retryAfterMs: undefined,
        reason: shortReason(error),
        code: 'invalid_request',
        advice:
          "The format of the answer is not the provider's API: an administrator must check the endpoint, or use another model.",
      };
    }
    const wrong = error instanceof Error && ourFault.test(error.name);
    return {
      status: undefined,
      retryable: !wrong,
      retryAfterMs: undefined,
      reason: shortReason(error),
      code: wrong ? 'invalid_request' : 'internal_error',
      advice: wrong
        ? 'The model cannot process this request; try another model.'
        : 'The connection to the model broke; run again.',
    };
  }
  // If an answer with status 200 breaks off, the SDK's error also has status 200. Ignore this status.
  const status = error.statusCode !== undefined && error.statusCode >= 400 ? error.statusCode : undefined;
  const headers = error.responseHeaders ?? {};
  const problem = parseProblem(error.responseBody ?? '');
  if (headers[gatewayErrorHeader] === 'resource_unavailable') {
    return {
      status: undefined,
      retryable: false,
      retried: true,
      retryAfterMs: undefined,
      reason: shortReason(error),
      code: 'resource_unavailable',
      advice: "Start the provider, or correct its address in the service's settings, then run again.",
    };
  }
  if (headers[gatewayErrorHeader] === 'internal_error') {
    return {
      status,
      retryable: false,
      retried: true,
      retryAfterMs: undefined,
      reason: shortReason(error),
      code: 'internal_error',
      advice: 'An administrator must read the log of the service.',
    };
  }
  const overBudget = ErrorCode.safeParse(headers[gatewayErrorHeader]).data;
  if (overBudget !== undefined) {
    return {
      status,
      retryable: false,
      retryAfterMs: undefined,
      reason: shortReason(error),
      code: overBudget,
      advice: 'The run may not use the model any more.',
    };
  }
  const providerMessage = isStatusText(error.message) ? providerText(error.responseBody) : undefined;
  const reason = providerMessage === undefined ? shortReason(error) : firstPart(providerMessage, 1_000);
  const base = { status, retryAfterMs: retryAfterMs(headers['retry-after']), reason };
  if (status === undefined) {
    return {
      ...base,
      retryable: true,
      code: 'internal_error',
      advice: 'The connection to the model broke; run again.',
    };
  }
  if (status >= 500 || status === 408 || status === 409) {
    return {
      ...base,
      retryable: true,
      code: 'internal_error',
      advice: 'The provider has trouble or is overloaded; run again later, or use another model.',
    };
  }
  if (status === 429) {
    return {
      ...base,
      retryable: true,
      code: 'resource_unavailable',
      advice:
        "The provider's rate limit or quota is used up; run again later, raise the limit at the provider, or use another model.",
    };
  }
  const code = (problem?.error_code as ErrorCode | undefined) ?? codeOfStatus(status);
  return { ...base, retryable: false, code, advice: adviceOfStatus(status) };
}

function codeOfStatus(status: number): ErrorCode {
  if (status === 401) return 'authentication_required';
  if (status === 402) return 'insufficient_credits';
  return status === 403 ? 'not_authorized' : 'invalid_request';
}

function adviceOfStatus(status: number): string {
  if (status === 401 || status === 403)
    return "An administrator must check the provider's key and the model's permission in the service.";
  if (status === 404) return 'The provider does not know the model; choose another one.';
  if (status === 413) return 'The conversation is too large for the model; give a smaller task, or use another model.';
  if (status === 422)
    return 'The endpoint does not accept this form of request: an administrator must check the endpoint, or use another model.';
  return 'The model refused the request; give a smaller task, or use another model.';
}

/** Returns the message of the provider; without such a message, returns the messages of the error and of its causes. */
function shortReason(error: unknown): string {
  const texts: string[] = [];
  for (let current: unknown = error, depth = 0; current !== undefined && current !== null && depth < 4; depth++) {
    const message = current instanceof Error ? current.message : messageOf(current);
    if (message !== undefined && message !== '' && !texts.includes(message)) texts.push(message);
    current = current instanceof Error ? current.cause : undefined;
  }
  return firstPart(texts.join(': '), 1_000) || 'no reason given';
}

/**
 * Returns the message of an error event in a stream. The event's data is the message itself, an object with a message, or an object that
 * contains such an object.
 */
function messageOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (typeof value !== 'object' || value === null) return undefined;
  const { message, error } = value as { message?: unknown; error?: unknown };
  return typeof message === 'string' ? message : (messageOf(error) ?? JSON.stringify(value));
}
