import { type Refusal, refuse } from '../../../platform/serving/refusal.ts';

/** 401 for a run token whose execution has ended, or was assigned again with another token. */
export const supersededAttempt = (): Refusal =>
  refuse('authentication_required', { detail: 'The execution of this run token has ended or was superseded.' });

/** 409 for actions that an agent may only do until its execution is stopping. */
export const stoppingAttempt = (): Refusal =>
  refuse('conflict', { detail: 'The execution is stopping: only its end can be reported.' });
