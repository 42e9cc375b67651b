import { shorten } from '@runyard/contract/wire/shorten';
import { asObject, asString } from '../../acp/tool-output.ts';

/** An error answer of the gateway or the provider to a request of the harness. */
export interface ModelRefusal {
  readonly status: number;
  readonly message: string;
}

/** The answers of the gateway to the model requests of one turn. */
export interface TurnAnswers {
  /** Number of model requests that succeeded. */
  readonly succeeded: number;
  /** The error answer to the last model request that was refused. */
  readonly refused: ModelRefusal | undefined;
}

const maxMessageLength = 2_000;

/**
 * Returns the message of an error answer. Anthropic, OpenAI and Google send the message in `error.message`, and our own service in
 * `detail`.
 */
export function refusalOf(status: number, body: string): ModelRefusal {
  const message = sentenceOf(body) ?? body.trim();
  return { status, message: shorten(message === '' ? 'without a reason' : message, maxMessageLength) };
}

function sentenceOf(body: string): string | undefined {
  try {
    const members = asObject(JSON.parse(body));
    return asString(asObject(members?.error)?.message) ?? asString(members?.detail);
  } catch {
    return undefined;
  }
}

/** Returns a sentence about the refusal, which becomes a part of the failure message of a turn. */
export const refusalSentence = ({ status, message }: ModelRefusal): string =>
  `The model gateway refused the last request of the harness with ${status}: ${message}`;
