/** The creator of a run, or the person for whom it executes. */
export interface RunActor {
  readonly kind: 'user' | 'service_account';
  readonly uid: string;
}
