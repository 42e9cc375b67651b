/** A credential of the code host, sent as basic authentication. */
export interface CodeHostCredential {
  /** `x-access-token` for GitHub, `oauth2` for GitLab. */
  readonly username: string;
  readonly password: string;
}

/** Outcome of the choice of a credential for a request to the code host. */
export type ChosenCredential =
  | {
      readonly kind: 'credential';
      /** Id of the stored credential. */
      readonly id: string;
      readonly credential: CodeHostCredential;
      /** Called when the code host refused the credential, so that no cache returns it again. */
      readonly refused: () => void;
    }
  /** No credential is stored for this repository, so only a public repository can be read. */
  | { readonly kind: 'none' }
  /** A credential is stored but gives no access. The message has the reason and the next step. */
  | { readonly kind: 'unusable'; readonly message: string }
  /** The code host could not be asked now. */
  | { readonly kind: 'unavailable'; readonly message: string };

/** Returns the header `Authorization` of a credential. */
export const basicAuthorization = ({ username, password }: CodeHostCredential): string =>
  `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;

/** A choice that allows a request to the code host. */
export type UsableCredential = Extract<ChosenCredential, { kind: 'credential' | 'none' }>;
