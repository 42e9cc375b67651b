import { z } from 'zod';
import { maxGithubApps, maxGithubInstallations } from '../limits.ts';
import { administrators } from '../wire/access.ts';
import { DeleteResponse } from '../wire/bodies.ts';
import type { Route } from '../wire/route.ts';
import {
  AuthorizeGithubRequest,
  CreateGithubAppRequest,
  GithubAnswerOfBrowser,
  GithubApp,
  GithubAppPlan,
  GithubAuthorization,
  GithubAuthorizationUrl,
  ListGithubAppsResponse,
  PlanGithubAppRequest,
} from './github.ts';

const app = z.object({ appUid: z.string().meta({ description: 'UID of the App' }) });
const installation = z.object({ installationUid: z.string().meta({ description: 'UID of the claimed installation' }) });
const unreachable = 'GitHub does not answer now';

/** Agent keys are refused: an agent must not decide which events start runs, and whose account on GitHub a person has. */
export const githubRoutes = {
  listGithubApps: {
    method: 'GET',
    path: '/github/apps',
    tag: 'code_hosts',
    summary: 'List the GitHub Apps of the team',
    description: 'With the installations that the team has claimed, and the account that you have linked.',
    allow: { user: 'viewer' },
    answer: { status: 200, description: 'Apps, oldest first', schema: ListGithubAppsResponse },
  },
  createGithubApp: {
    method: 'POST',
    path: '/github/apps',
    tag: 'code_hosts',
    summary: 'Store a GitHub App that exists already',
    description:
      "Its private key is a stored credential of the team. The service asks GitHub for the App's name, so the credential must be right.",
    allow: administrators,
    body: CreateGithubAppRequest,
    answer: { status: 201, description: 'Stored', schema: GithubApp },
    errors: {
      400: 'The credential is not one of the team with the key of a GitHub App, or GitHub does not accept it',
      409: `The App is stored already, or the team has ${maxGithubApps}`,
      503: unreachable,
    },
  },
  planGithubApp: {
    method: 'POST',
    path: '/github/apps/plan',
    tag: 'code_hosts',
    summary: 'Prepare the creation of a GitHub App',
    description:
      'The browser sends the manifest to GitHub, where a person confirms it. GitHub sends the browser back with a code for convertGithubApp. Nothing is stored yet.',
    allow: administrators,
    body: PlanGithubAppRequest,
    answer: { status: 200, description: 'The plan', schema: GithubAppPlan },
    errors: { 400: 'The service clones from no fixed host of GitHub (RUNYARD_CODE_HOST_URL)' },
  },
  convertGithubApp: {
    method: 'POST',
    path: '/github/apps/conversion',
    tag: 'code_hosts',
    summary: 'Store the GitHub App that GitHub has created',
    description:
      'GitHub gives the secrets of the App for the code only once. They are stored encrypted, and no answer contains them.',
    allow: administrators,
    body: GithubAnswerOfBrowser,
    answer: { status: 201, description: 'Stored', schema: GithubApp },
    errors: {
      400: 'The state is not yours or too old, or GitHub does not accept the code',
      409: `The team already has a credential for every owner and for the App's owner on this host, or ${maxGithubApps} Apps`,
      503: unreachable,
    },
  },
  deleteGithubApp: {
    method: 'DELETE',
    path: '/github/apps/{appUid}',
    tag: 'code_hosts',
    summary: 'Delete a GitHub App from the team',
    description:
      'With its installations and links. Its private key stays as a credential of the code host. The App on GitHub stays too.',
    allow: administrators,
    params: app,
    answer: { status: 200, description: 'Deleted', schema: DeleteResponse },
    errors: { 404: 'No such App' },
  },
  authorizeGithub: {
    method: 'POST',
    path: '/github/apps/{appUid}/authorization',
    tag: 'code_hosts',
    summary: 'Begin to link your account, or to claim an installation',
    description:
      'Answers with the page of GitHub that the browser opens. Only the person who begins can finish. A claim needs an administrator of the team, who is also the account of the installation or an owner of its organization.',
    allow: { user: 'viewer', byBody: { member: 'purpose', roles: { claim: 'admin' } } },
    params: app,
    body: AuthorizeGithubRequest,
    answer: { status: 200, description: 'The page', schema: GithubAuthorizationUrl },
    errors: { 404: 'No such App or factory' },
  },
  finishGithubAuthorization: {
    method: 'POST',
    path: '/github/authorization',
    tag: 'code_hosts',
    summary: 'Link the account, or claim the installation',
    description: "The service uses the person's token once, to ask GitHub who it is, and does not store it.",
    allow: { user: 'viewer' },
    body: GithubAnswerOfBrowser,
    answer: { status: 200, description: 'What was proved', schema: GithubAuthorization },
    errors: {
      400: 'The state is not yours or too old, or GitHub does not accept the code',
      403: 'The account does not administer the installation, or your role is too low for a claim',
      404: 'No such App, installation or factory',
      409: `The account is linked by somebody else, the installation is claimed already, or the team has ${maxGithubInstallations}`,
      503: unreachable,
    },
  },
  unlinkGithub: {
    method: 'DELETE',
    path: '/github/apps/{appUid}/link',
    tag: 'code_hosts',
    summary: 'Unlink your account on GitHub',
    description: 'Comments of the account count as those of somebody outside the team from then on.',
    allow: { user: 'viewer' },
    params: app,
    answer: { status: 200, description: 'Unlinked', schema: DeleteResponse },
    errors: { 404: 'No such App, or you have linked no account' },
  },
  releaseGithubInstallation: {
    method: 'DELETE',
    path: '/github/installations/{installationUid}',
    tag: 'code_hosts',
    summary: 'Release an installation',
    description:
      'Its events start nothing any more, and runs do not answer there. The webhook with its log is deleted.',
    allow: administrators,
    params: installation,
    answer: { status: 200, description: 'Released', schema: DeleteResponse },
    errors: { 404: 'No such installation' },
  },
} as const satisfies Record<string, Route>;
