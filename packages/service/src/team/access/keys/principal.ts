import type { KeyLimit, PrincipalKind, Role } from '@runyard/contract/wire/access';
import type { RequestOrigin } from '../../../platform/serving/served-route.ts';

/** The owner of an API key. */
export interface Principal {
  readonly keyId: string;
  readonly kind: Exclude<PrincipalKind, 'run'>;
  readonly teamId: string;
  readonly teamUid: string;
  readonly creator: {
    readonly kind: 'user' | 'service_account';
    readonly uid: string;
    readonly displayName: string;
    readonly email?: string;
  };
  /** Role of the owner in the team; agent keys have the role of a member. */
  readonly role: Role;
  /** True if the key is the key of the service's operator. */
  readonly isOperator: boolean;
  /** Present if an agent key is limited to this purpose: it is accepted only by routes that name the purpose. */
  readonly limitedTo?: KeyLimit;
  /** Present if the key belongs to a browser session. `isRecent`: the session began less than an hour ago. */
  readonly browserSession?: { readonly expiresAt: string; readonly isRecent: boolean };
  /** The request in which the principal acts; null if the service itself acts, without a request. */
  readonly from: RequestOrigin | null;
}
