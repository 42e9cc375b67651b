import { z } from 'zod';
import { RepositoryName } from '../environments/repositories.ts';
import { NonBlank, Timestamp, Uuid } from '../wire/primitives.ts';
import { UserProfile } from '../wire/profiles.ts';

/** The runs that may use a credential: the runs of one person, or all runs of the team. */
export const CodeHostScope = z.enum(['personal', 'team']).meta({
  id: 'CodeHostScope',
  description:
    "personal: only for runs that execute as the person who stored it; it has priority over the team's. team: for every run of the team.",
});
export type CodeHostScope = z.infer<typeof CodeHostScope>;

export const CodeHostCredentialKind = z.enum(['token', 'github_app']).meta({
  id: 'CodeHostCredentialKind',
  description:
    'token: a fixed token or password. github_app: a GitHub App; the service uses its key to request tokens that are valid for an hour.',
});
export type CodeHostCredentialKind = z.infer<typeof CodeHostCredentialKind>;

/** A stored credential without its secret part. */
export const CodeHostCredential = z
  .object({
    id: Uuid.describe('Id of the credential'),
    scope: CodeHostScope,
    kind: CodeHostCredentialKind,
    host: z.string().describe('Code host to which it is sent, in lower case, with the port if the URL has one'),
    owner: z
      .string()
      .optional()
      .describe('Only for repositories of this owner, in lower case; absent: for every owner'),
    username: z.string().optional().describe('Name that a token is sent with'),
    app_id: z.string().optional().describe('Id or client id of the GitHub App'),
    installation_id: z
      .string()
      .optional()
      .describe('Installation of the GitHub App; absent: the installation of the repository'),
    user: UserProfile.optional().describe('Person for whose runs a personal credential is used'),
    created_at: Timestamp.describe('When it was stored, RFC 3339 in UTC'),
  })
  .meta({ id: 'CodeHostCredential', description: 'A credential of a code host, without its secret part' });
export type CodeHostCredential = z.infer<typeof CodeHostCredential>;

export const ListCodeHostCredentialsResponse = z
  .object({ credentials: z.array(CodeHostCredential).describe('Credentials, oldest first') })
  .meta({
    id: 'ListCodeHostCredentialsResponse',
    description: 'Credentials of code hosts, without their secret parts',
  });

const HostName = z.string().regex(/^(?=.{1,255}$)[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]{1,5})?$/, {
  error: 'must be a host name, with a port if it is not the default port, such as github.com or git.example.com:8443',
});
/** A name cannot contain a colon, because a colon ends the name in basic authentication. */
const UserName = z.string().regex(/^[\x21-\x39\x3b-\x7e]{1,200}$/, {
  error: 'must be 1 to 200 printable ASCII characters without spaces and colons',
});
const SecretToken = z
  .string()
  .regex(/^[\x21-\x7e]{1,4096}$/, { error: 'must be 1 to 4096 printable ASCII characters without spaces' });
const AppId = z.string().regex(/^[A-Za-z0-9._-]{1,100}$/, { error: 'must be the id or client id of a GitHub App' });
const InstallationId = z.string().regex(/^[0-9]{1,20}$/, { error: 'must be the number of an installation, as text' });

const ofToken = ['token', 'username'] as const;
const ofApp = ['app_id', 'private_key', 'installation_id'] as const;

/** Body of the request that stores a credential. */
export const CreateCodeHostCredentialRequest = z
  .object({
    scope: CodeHostScope.default('personal'),
    kind: CodeHostCredentialKind,
    host: HostName.optional().describe(
      'Code host; absent: the host of RUNYARD_CODE_HOST_URL, if that has a fixed host',
    ),
    owner: RepositoryName.optional().describe('Only for repositories of this owner; absent: for every owner'),
    token: SecretToken.optional().describe('With kind token: the token or password'),
    username: UserName.optional().describe(
      'With kind token: user name for basic authentication; absent: `x-access-token`, as GitHub expects. GitLab: `oauth2`',
    ),
    app_id: AppId.optional().describe('With kind github_app: id or client id of the App'),
    private_key: NonBlank.max(16_384)
      .optional()
      .describe('With kind github_app: private key of the App as PEM, RSA of at least 2048 bits'),
    installation_id: InstallationId.optional().describe(
      'With kind github_app: its installation; absent: the service looks up the installation of the repository',
    ),
  })
  .superRefine((wanted, context) => {
    const needed = wanted.kind === 'token' ? (['token'] as const) : (['app_id', 'private_key'] as const);
    for (const member of needed)
      if (wanted[member] === undefined)
        context.addIssue({ code: 'custom', path: [member], message: `is required for kind ${wanted.kind}` });
    for (const member of wanted.kind === 'token' ? ofApp : ofToken)
      if (wanted[member] !== undefined)
        context.addIssue({ code: 'custom', path: [member], message: `does not belong to kind ${wanted.kind}` });
  })
  .meta({
    id: 'CreateCodeHostCredentialRequest',
    description: 'A credential of a code host to store. No answer contains its secret part',
    allOf: [
      {
        oneOf: [
          { properties: { kind: { const: 'token' } }, required: ['token'], not: { anyOf: ofApp.map(requires) } },
          {
            properties: { kind: { const: 'github_app' } },
            required: ['app_id', 'private_key'],
            not: { anyOf: ofToken.map(requires) },
          },
        ],
      },
    ],
  });
export type CreateCodeHostCredentialRequest = z.infer<typeof CreateCodeHostCredentialRequest>;

function requires(member: string): { readonly required: string[] } {
  return { required: [member] };
}
