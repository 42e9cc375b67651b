/** Who made a run, or on whose behalf it executes. */
export interface RunActor {
  readonly kind: 'user' | 'service_account';
  readonly uid: string;
}
