/** A credential for the code host. It is sent as HTTP basic authentication. */
export interface CodeHostCredential {
  /** User name: `x-access-token` for GitHub, `oauth2` for GitLab. */
  readonly username: string;
  readonly password: string;
}

/** Outcome of the choice of a credential for a request to the code host. */
export type ChosenCredential =
  | {
      readonly kind: 'credential';
      /** Id of the stored credential. */
      readonly id: string;
      /** The credential belongs to a person and not to the team. */
      readonly isPersonal?: true;
      readonly credential: CodeHostCredential;
      /** Call this when the code host has refused the credential, so that no cache returns it again. */
      readonly refused: () => void;
    }
  /**
   * No credential is stored for this repository, so only a public repository can be read. `withheld`: a credential is stored, but the run
   * may not use it. The sentence says why, and what to do.
   */
  | { readonly kind: 'none'; readonly withheld?: string }
  /** A credential is stored but gives no access. The message says why, and what to do. */
  | { readonly kind: 'unusable'; readonly message: string }
  /** The code host could not be asked now. */
  | { readonly kind: 'unavailable'; readonly message: string };

/** Returns the header `Authorization` of a credential. */
export const basicAuthorization = ({ username, password }: CodeHostCredential): string =>
  `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;

/** The outcomes of the choice after which the code host can be asked. */
export type UsableCredential = Extract<ChosenCredential, { kind: 'credential' | 'none' }>;
