import { type Refusal, refuse } from '../serving/refusal.ts';
import { busyRetrySeconds } from './request-bodies.ts';

/** Returns a 429 refusal: the caller, or the service as a whole, has reached its limit of simultaneous work. */
export const tooBusy = (detail: string): Refusal =>
  refuse('resource_unavailable', {
    detail: `${detail} Send this request again in ${busyRetrySeconds} s.`,
    headers: { 'retry-after': String(busyRetrySeconds) },
  });
