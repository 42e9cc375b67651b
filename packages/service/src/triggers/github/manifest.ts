/** The manifest from which GitHub creates an App (docs.github.com, "Registering a GitHub App from a manifest"). */
import type { PlanGithubAppRequest } from '@runyard/contract/team/github';
import { isLoopback } from '@runyard/system/address-rules';
import type { GithubHost } from '../../team/code-hosts/github-api.ts';

/** The least permissions for what the service does, each with its reason. */
export const permissions = [
  { name: 'metadata', access: 'read', reason: 'to name repositories; GitHub gives it to every App' },
  { name: 'issues', access: 'write', reason: 'to read requests in issues, and to answer there' },
  { name: 'pull_requests', access: 'write', reason: 'to answer in pull requests, and to open them' },
  {
    name: 'checks',
    access: 'write',
    reason: 'to know whether checks of a pull request have failed, and to show the state of a run on its commit',
  },
  { name: 'contents', access: 'write', reason: 'to clone repositories, and to push branches of runs' },
  {
    name: 'members',
    access: 'read',
    reason: 'to check that the person who claims an installation owns the organization',
  },
] as const;

/** The events that automations can name and that these permissions give. */
const events = [
  'issues',
  'issue_comment',
  'pull_request',
  'pull_request_review',
  'pull_request_review_comment',
  'push',
  'check_suite',
] as const;

/** Path of the page to which GitHub sends browsers back. */
export const pagePath = '/settings/github';

/** Returns whether GitHub on the internet can probably reach an address: it is no loopback address. */
export const isPublic = (address: string): boolean => {
  const url = URL.parse(address);
  return url !== null && !isLoopback(url);
};

/** Returns the page of GitHub on which a person confirms the new App, and the manifest. */
export function planOf(
  host: GithubHost,
  { name, organization, is_public }: PlanGithubAppRequest,
  { baseUrl, webhookUrl, state }: { readonly baseUrl: string; readonly webhookUrl: string; readonly state: string },
): { readonly url: string; readonly manifest: string } {
  const page = `${baseUrl}${pagePath}`;
  const settings = organization === undefined ? '/settings' : `/organizations/${organization}/settings`;
  const manifest = {
    name,
    url: baseUrl,
    redirect_url: `${page}?step=created`,
    callback_urls: [page],
    setup_url: page,
    setup_on_update: false,
    public: is_public,
    hook_attributes: { url: webhookUrl, active: true },
    default_permissions: Object.fromEntries(permissions.map((each) => [each.name, each.access])),
    default_events: events,
  };
  return {
    url: `${host.web}${settings}/apps/new?${new URLSearchParams({ state })}`,
    manifest: JSON.stringify(manifest),
  };
}
