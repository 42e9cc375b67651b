/** Who calls, as the key says. */
export interface Principal {
  readonly keyId: string;
  readonly kind: 'personal' | 'agent';
  readonly teamId: string;
  readonly teamUid: string;
  readonly creator: {
    readonly kind: 'user' | 'service_account';
    readonly uid: string;
    readonly displayName: string;
    readonly email?: string;
  };
  /** In the team; agent keys are members. */
  readonly role: 'admin' | 'member';
  /** The key belongs to who runs the service. */
  readonly isOperator: boolean;
}
