import type { RequestOutcome } from '../../runs/submit/request.ts';
import { invalid, type Refusal, refuse } from './problem.ts';

/** Why a request for a run, of a person or of another run, is not fulfilled. */
export function refusedRequest(outcome: Exclude<RequestOutcome, { kind: 'ok' }>): Refusal {
  switch (outcome.kind) {
    case 'invalid':
      return invalid(outcome.faults);
    case 'forbidden':
      return refuse('not_authorized', { detail: outcome.detail });
    case 'not_available':
      return refuse('feature_not_available', { detail: outcome.detail });
  }
}
