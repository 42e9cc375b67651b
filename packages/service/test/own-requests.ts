/** Test support: makes a valid request to each route of the contract, about objects that a team has. */
import { randomUUIDv7 } from 'node:crypto';
import type { Route } from '@runyard/contract/wire/route';
import type { OwnThings } from './own-things.ts';
import type { RequestOptions } from './service.ts';

/**
 * Returns a request to a route: a path with the ids of the team's own objects, the query that the route needs, and a valid body if the
 * route takes one. For a route with signed URLs, the signature is missing.
 */
export type RequestOfRoute = (
  name: string,
  route: Route,
) => { readonly path: string; readonly options: Pick<RequestOptions, 'body' | 'raw' | 'headers'> };

const definitionOf = (name: string) => [
  {
    path: 'factory.yaml',
    content: `schemaVersion: v1alpha1\nname: ${name}\nrepositories: []\nagentDefaults:\n  model: runbook\n`,
  },
  { path: 'agents/foreman/agent.md', content: '---\nagentType: FOREMAN\n---\n' },
];
const minimalDefinition = definitionOf('F');
export const schedule = { name: 'S', cron_schedule: '@yearly', prompt: 'a', enabled: true };

export const bodies: Readonly<Record<string, unknown>> = {
  createRun: { prompt: 'a' },
  createRunDeprecated: { prompt: 'a' },
  createEnvironment: { config: { name: 'E' } },
  updateEnvironment: { config: { name: 'E' } },
  createEventSubscription: { url: 'https://example.com/', events: ['run.created'] },
  updateEventSubscription: { name: 'S' },
  createSchedule: schedule,
  updateSchedule: schedule,
  previewSchedule: { cron_schedule: '@yearly' },
  createFactory: { name: 'F' },
  dispatchFactory: { prompt: 'a' },
  updateFactoryTask: { stage: 'REVIEW' },
  applyFactoryDefinition: { files: minimalDefinition },
  validateFactoryFiles: { files: minimalDefinition },
  planFactoryDefinition: { files: minimalDefinition },
  rollBackDefinition: { version: 1 },
  setFactorySource: { repository: 'acme/factories' },
  createWebhook: { name: 'W' },
  updateWebhook: { name: 'W' },
  createMcpServer: { name: 'M', command: 'm' },
  updateMcpServer: { name: 'M' },
  updateModelSettings: { enable: ['runbook'] },
  // Names of the domain `.invalid` have no address (RFC 6761, 6.4), so no test sends requests to a provider.
  putModelProvider: { key: 'a', base_url: 'https://provider.invalid' },
  createGithubApp: {
    credential_id: randomUUIDv7(),
    client_id: 'a',
    client_secret: 'a'.repeat(20),
    webhook_secret: 'a'.repeat(20),
  },
  planGithubApp: { name: 'a' },
  convertGithubApp: { code: 'a', state: 'a' },
  finishGithubAuthorization: { code: 'a', state: 'a' },
  inviteEnvironmentGuest: { email: 'guest@example.com' },
  putSecret: { value: 'a secret value', scope: 'personal' },
  createKey: { name: 'K', kind: 'personal' },
  reportEvents: { events: [] },
  holdConnection: { host: 'example.com', port: 443 },
  reportArtifact: { artifact_type: 'PLAN', data: {} },
  submitResult: { turn: 1, result: 1 },
  startFreshCheck: { turn: 1, attempt: 1, name: 'c' },
  cancelFreshCheck: {},
  openPullRequest: { repository: { owner: 'acme', repo: 'site' }, head: 'change', title: 'a' },
  answerOnGithub: { tool: 'comment', input: { body: 'a' } },
  finishTask: { success: true, summary: '' },
  uploadSnapshot: { turn: 1, files: [] },
  reportChanges: { repositories: [] },
  reportClientEvent: { event_uuid: 'u', event_name: 'n', timestamp: '2026-11-21T10:00:00Z' },
  reportShutdown: { reason: 'x' },
  startChildRun: { prompt: 'a' },
  sendFollowup: { message: 'a' },
  editFollowup: { message: 'b' },
  sendConversationFollowup: { message: 'a' },
  renameConversation: { title: 'a' },
  prepareRunAttachments: { files: [{ filename: 'a.txt', mime_type: 'text/plain' }] },
  prepareConversationAttachments: { files: [{ filename: 'a.txt', mime_type: 'text/plain' }] },
  ...Object.fromEntries(
    ['read', 'unread', 'dismiss', 'restore'].map((mark) => [`${mark}Notifications`, { notification_uids: ['a'] }]),
  ),
  createSavedView: { name: 'V', path: '/runs' },
  updateSavedView: { name: 'V' },
  createPasskey: {
    name: 'P',
    passkey: {
      id: 'AA',
      rawId: 'AA',
      type: 'public-key',
      response: { clientDataJSON: 'AA', attestationObject: 'AA' },
    },
  },
  updatePasskey: { name: 'Q' },
  createTeam: { name: 'T' },
  updateTeam: { name: 'T' },
  updateTeamMember: { role: 'viewer' },
  createTeamInvitation: { role: 'member' },
  createAgentIdentity: { name: 'I' },
  updateAgentIdentity: { name: 'J' },
};

const queries: Readonly<Record<string, string>> = {
  keepMemory: '?turn=1',
  deleteSecret: '?scope=personal',
  keepWorkspace: '?turn=1',
  findRunByExternalReference: '?url=https%3A%2F%2Fexample.com%2F1',
  listNotifications: '?scope=team',
  search: '?q=a',
  streamRunEvents: '?follow=false',
  searchFactoryTasks: '?q=a',
};

export const automationOf = (webhookUid: string) => ({
  name: 'A',
  prompt: 'a',
  triggers: [{ provider: 'webhook', event: 'received', filter: { webhook_ids: [webhookUid] } }],
});

const queryOfTask = (name: string, { taskConversationId, taskRunId }: OwnThings): string =>
  name === 'getFactoryTaskByConversation'
    ? `?conversation_id=${taskConversationId}`
    : name === 'getFactoryTaskByRun'
      ? `?run_id=${taskRunId}`
      : name === 'findFactoryTask'
        ? `?reference=${taskRunId}`
        : '';

/** Returns a function that makes requests about these objects. */
export function requestsAbout(own: OwnThings, baseUrl: string): RequestOfRoute {
  return (name, route) => {
    const uid = route.path.startsWith('/keys') ? own.keyUid : own.environmentUid;
    const deliveryId = route.path.startsWith('/factory') ? own.webhookDeliveryId : own.deliveryId;
    const values: Readonly<Record<string, string>> = {
      ...own,
      uid,
      deliveryId,
      artifactUid: route.path.includes('/screenshots/') ? own.screenshotUid : own.artifactUid,
      attachmentId: name === 'putAttachment' ? own.preparedAttachmentId : own.attachmentId,
      factoryUid: route.path.includes('/source') ? own.sourcedFactoryUid : own.factoryUid,
      name: 'OWN',
      provider: 'google',
      kind: 'artifact',
      id: own.artifactUid,
      schemaVersion: 'v1alpha1',
      document: 'factory.schema.json',
      messageSeq: '1',
      version: '1',
    };
    const path =
      route.path.replaceAll(/\{(\w+)\}/g, (_, member: string) => values[member] ?? '') +
      (queries[name] ?? queryOfTask(name, own));
    if (route.bodyType) return { path, options: { raw: 'a', headers: { 'content-type': route.bodyType } } };
    if (!route.body) return { path, options: {} };
    if (name === 'createBrowserSession')
      return { path, options: { body: { code: own.signInCode }, headers: { origin: baseUrl } } };
    if (name === 'readSignInCode') return { path, options: { body: { code: own.signInCode } } };
    if (name === 'startSignOn') return { path, options: { body: { provider: 'acme' }, headers: { origin: baseUrl } } };
    if (name === 'acceptTeamInvitation' || name === 'startInvitedPasskey')
      return { path, options: { body: { key: own.invitationKey, display_name: 'Q' } } };
    if (name === 'joinTeam' || name === 'readTeamInvitation')
      return { path, options: { body: { key: own.invitationKey } } };
    // Use a new owner each time, because a team can have only one credential for an owner.
    if (name === 'createCodeHostCredential')
      return { path, options: { body: { kind: 'token', owner: randomUUIDv7(), token: 'a' } } };
    // Use a new name each time, because two automations of a factory cannot have the same name.
    if (name === 'createAutomation' || name === 'updateAutomation')
      return { path, options: { body: { ...automationOf(own.webhookUid), name: randomUUIDv7() } } };
    // Use a new name each time, because two factories of a team cannot have the same name.
    if (name === 'createFactoryFromFiles')
      return { path, options: { body: { files: definitionOf(`F ${randomUUIDv7()}`) } } };
    if (name === 'createFactoryTask')
      return { path, options: { body: { conversation_id: own.conversationId, title: 'T' } } };
    if (name === 'dryRunAutomation' || name === 'simulateDelivery') return { path, options: { body: { payload: {} } } };
    if (name === 'accept')
      return { path, options: { body: { kind: 'environment', uid: own.environmentUid, revision: 1 } } };
    if (name === 'authorizeGithub')
      return { path, options: { body: { purpose: 'link', installation_id: '1', factory_uid: own.factoryUid } } };
    if (name === 'testFilter') return { path, options: { body: { filter: {}, payload: {} } } };
    if (name === 'testFilterOnDeliveries')
      return { path, options: { body: { filter: {}, webhook_uid: own.webhookUid } } };
    const body = name === 'sendRunMessage' ? { run_id: own.childRunId, message: 'a' } : (bodies[name] ?? {});
    return { path, options: { body } };
  };
}
