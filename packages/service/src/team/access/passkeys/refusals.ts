import type { Logger } from 'pino';
import { type Refusal, refuse } from '../../../platform/serving/refusal.ts';
import type { NotRight } from './verify.ts';

/** Returns the refusal (403) of an answer that is not right, and writes the reason into the log: it would help an attacker. */
export function refusePasskey(log: Logger, { notRight }: NotRight): Refusal {
  log.warn({ reason: notRight }, 'the answer of a passkey was refused');
  return refuse('not_authorized', {
    detail:
      'The passkey is unknown here, or its answer is not for this page, is too old, was used already, or was not confirmed with a PIN, a fingerprint or a face. Try again.',
  });
}
