/** The creator of a run, or the one on whose behalf it executes. */
export interface RunActor {
  readonly kind: 'user' | 'service_account';
  readonly uid: string;
}
