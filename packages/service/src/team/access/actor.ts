/** A person or a service account: the creator of a run, or the executor whose rights the run uses. */
export interface RunActor {
  readonly kind: 'user' | 'service_account';
  readonly uid: string;
}
