import { z } from 'zod';
import { NonBlank, Timestamp, Uid22, Uuid } from '../wire/primitives.ts';

/** An account or organization of GitHub, as far as people need it. */
const Account = z
  .object({
    id: z.int().describe('Numeric id, which never changes'),
    login: z.string().describe('Present name'),
    type: z.string().optional().describe('User or Organization'),
  })
  .meta({ id: 'GithubAccount', description: 'An account or organization of GitHub' });

const GithubPermission = z
  .object({
    name: z.string().describe('Permission'),
    access: z.enum(['read', 'write']).meta({ id: 'GithubAccess', description: 'Access of an App' }).describe('Access'),
    reason: z.string().describe('Purpose for which the service needs it'),
  })
  .meta({ id: 'GithubPermission', description: 'A permission that the App asks for' });

export const GithubInstallation = z
  .object({
    uid: z.string().describe('UID of the claimed installation, 22 characters'),
    installation_id: z.string().describe("GitHub's number of the installation"),
    account: Account.describe('Account or organization whose repositories it can use'),
    factory_uid: z.string().describe('Factory whose automations its events start'),
    webhook_uid: z.string().describe('Webhook of the factory whose log shows its events'),
    is_suspended: z.boolean().describe('True: the owner of the account has suspended it on GitHub'),
    created_at: Timestamp.describe('When the team claimed it, RFC 3339 in UTC'),
  })
  .meta({ id: 'GithubInstallation', description: 'An installation of a GitHub App that the team has claimed' });
export type GithubInstallation = z.infer<typeof GithubInstallation>;

export const GithubApp = z
  .object({
    uid: z.string().describe('UID of the App, 22 characters'),
    host: z.string().describe('Code host, such as github.com'),
    app_id: z.string().describe("GitHub's number of the App"),
    handle: z.string().describe('Text that mentions the App in a comment, such as @my-app'),
    credential_id: Uuid.describe('Credential of the code host with its private key'),
    install_url: z.string().describe('Page on which people install the App'),
    webhook_url: z.string().describe("Webhook URL for the App's settings"),
    installations: z.array(GithubInstallation).describe('Installations that the team has claimed, oldest first'),
    poll_problem: z
      .string()
      .optional()
      .describe(
        "Why GitHub's log of deliveries cannot be read, so that events that did not arrive are lost; absent: it can",
      ),
    linked_account: Account.optional().describe('Account that you have linked; absent: none'),
    created_at: Timestamp.describe('When it was stored, RFC 3339 in UTC'),
  })
  .meta({ id: 'GithubApp', description: 'A GitHub App of the team, without its secrets' });
export type GithubApp = z.infer<typeof GithubApp>;

export const ListGithubAppsResponse = z
  .object({ apps: z.array(GithubApp).describe('Apps of the team, oldest first') })
  .meta({ id: 'ListGithubAppsResponse', description: 'GitHub Apps of the team' });

const secret = z.string().regex(/^[\x21-\x7e]{16,500}$/, {
  error: 'must be 16 to 500 printable ASCII characters without spaces',
});

export const CreateGithubAppRequest = z
  .object({
    credential_id: z.uuid().describe("Credential of the team with the App's private key, of the kind github_app"),
    client_id: z
      .string()
      .regex(/^[A-Za-z0-9._-]{1,100}$/, { error: 'must be the client id of a GitHub App' })
      .describe('Client id of the App'),
    client_secret: secret.describe('A client secret of the App. People link their accounts with it'),
    webhook_secret: secret.describe('Webhook secret in the settings of the App'),
  })
  .meta({ id: 'CreateGithubAppRequest', description: 'A GitHub App that exists already' });
export type CreateGithubAppRequest = z.infer<typeof CreateGithubAppRequest>;

const organization = z
  .string()
  .regex(/^[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})$/, { error: 'must be the name of an organization' });

export const PlanGithubAppRequest = z
  .object({
    name: NonBlank.max(34).describe('Name of the new App, which must be free on the host'),
    organization: organization.optional().describe('Organization that will own it; absent: your account on GitHub'),
    is_public: z.boolean().default(false).describe('True: other accounts than its owner can install it too'),
  })
  .meta({ id: 'PlanGithubAppRequest', description: 'A GitHub App to create' });
export type PlanGithubAppRequest = z.infer<typeof PlanGithubAppRequest>;

export const GithubAppPlan = z
  .object({
    url: z.string().describe('Page of GitHub to which the browser sends a form with the member `manifest`'),
    manifest: z.string().describe('Value of the form, as JSON'),
    permissions: z.array(GithubPermission).describe('Permissions that the App asks for'),
    has_public_address: z
      .boolean()
      .describe("False: GitHub cannot reach this service, so it reads the events from GitHub's log every minute"),
  })
  .meta({ id: 'GithubAppPlan', description: 'How the browser creates the App on GitHub' });
export type GithubAppPlan = z.infer<typeof GithubAppPlan>;

const code = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,200}$/, { error: 'must be the code with which GitHub sent the browser back' })
  .describe('Code with which GitHub sent the browser back');
const state = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,2000}$/, { error: 'must be the state with which GitHub sent the browser back' })
  .describe('State with which GitHub sent the browser back');

export const GithubAnswerOfBrowser = z
  .object({ code, state })
  .meta({ id: 'GithubAnswerOfBrowser', description: 'The parameters that GitHub added to the address of the page' });
export type GithubAnswerOfBrowser = z.infer<typeof GithubAnswerOfBrowser>;

export const GithubPurpose = z.enum(['link', 'claim']).meta({
  id: 'GithubPurpose',
  description: 'link: connects your account on GitHub with you. claim: makes an installation one of the team',
});
export type GithubPurpose = z.infer<typeof GithubPurpose>;

export const AuthorizeGithubRequest = z
  .object({
    purpose: GithubPurpose,
    installation_id: z
      .string()
      .regex(/^[0-9]{1,15}$/, { error: 'must be the number of an installation, as text' })
      .optional()
      .describe('With claim: the installation'),
    factory_uid: Uid22.optional().describe('With claim: the factory whose automations its events start'),
  })
  .superRefine(({ purpose, ...members }, context) => {
    for (const name of ['installation_id', 'factory_uid'] as const)
      if (purpose === 'claim' && members[name] === undefined)
        context.addIssue({ code: 'custom', path: [name], message: 'is required with claim' });
  })
  .meta({
    id: 'AuthorizeGithubRequest',
    description: 'The account or the installation that you prove to be yours on GitHub',
  });
export type AuthorizeGithubRequest = z.infer<typeof AuthorizeGithubRequest>;

export const GithubAuthorizationUrl = z
  .object({ url: z.string().describe('Page of GitHub to open in the browser') })
  .meta({ id: 'GithubAuthorizationUrl', description: 'Where the proof begins' });

export const GithubAuthorization = z
  .object({
    purpose: GithubPurpose,
    account: Account.describe('Account that has authorized'),
    installation: GithubInstallation.optional().describe('With claim: the claimed installation'),
  })
  .meta({ id: 'GithubAuthorization', description: 'What was proved' });
export type GithubAuthorization = z.infer<typeof GithubAuthorization>;
