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

const minimalDefinition = [
  {
    path: 'factory.yaml',
    content: 'schemaVersion: v1alpha1\nname: F\nrepositories: []\nagentDefaults:\n  model: runbook\n',
  },
  { path: 'agents/foreman/agent.md', content: '---\nagentType: FOREMAN\n---\n' },
];
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
  setFactorySource: { repository: 'acme/factories' },
  createWebhook: { name: 'W' },
  updateWebhook: { name: 'W' },
  createMcpServer: { name: 'M', command: 'm' },
  updateMcpServer: { name: 'M' },
  updateModelSettings: { enable: ['runbook'] },
  inviteEnvironmentGuest: { email: 'guest@example.com' },
  putSecret: { value: 'a secret value', scope: 'personal' },
  createKey: { name: 'K', kind: 'personal' },
  reportEvents: { events: [] },
  holdConnection: { host: 'example.com', port: 443 },
  reportArtifact: { artifact_type: 'PLAN', data: {} },
  openPullRequest: { repository: { owner: 'acme', repo: 'site' }, head: 'change', title: 'a' },
  finishTask: { success: true, summary: '' },
  uploadSnapshot: { turn: 1, files: [] },
  reportChanges: { repositories: [] },
  reportClientEvent: { event_uuid: 'u', event_name: 'n', timestamp: '2026-11-21T10:00:00Z' },
  reportShutdown: { reason: 'x' },
  startChildRun: { prompt: 'a' },
  sendFollowup: { message: 'a' },
  sendConversationFollowup: { message: 'a' },
  prepareRunAttachments: { files: [{ filename: 'a.txt', mime_type: 'text/plain' }] },
  prepareConversationAttachments: { files: [{ filename: 'a.txt', mime_type: 'text/plain' }] },
  createSavedView: { name: 'V', path: '/runs' },
  updateSavedView: { name: 'V' },
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
  search: '?q=a',
  streamRunEvents: '?follow=false',
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
      kind: 'artifact',
      id: own.artifactUid,
      schemaVersion: 'v1alpha1',
      document: 'factory.schema.json',
      messageSeq: '1',
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
    if (name === 'acceptTeamInvitation')
      return { path, options: { body: { key: own.invitationKey, display_name: 'Q' } } };
    if (name === 'joinTeam') return { path, options: { body: { key: own.invitationKey } } };
    // Use a new owner each time, because a team can have only one credential for an owner.
    if (name === 'createCodeHostCredential')
      return { path, options: { body: { kind: 'token', owner: randomUUIDv7(), token: 'a' } } };
    // Use a new name each time, because two automations of a factory cannot have the same name.
    if (name === 'createAutomation' || name === 'updateAutomation')
      return { path, options: { body: { ...automationOf(own.webhookUid), name: randomUUIDv7() } } };
    if (name === 'createFactoryTask')
      return { path, options: { body: { conversation_id: own.conversationId, title: 'T' } } };
    if (name === 'dryRunAutomation' || name === 'simulateDelivery') return { path, options: { body: { payload: {} } } };
    if (name === 'accept')
      return { path, options: { body: { kind: 'environment', uid: own.environmentUid, revision: 1 } } };
    if (name === 'testFilter') return { path, options: { body: { filter: {}, payload: {} } } };
    if (name === 'testFilterOnDeliveries')
      return { path, options: { body: { filter: {}, webhook_uid: own.webhookUid } } };
    const body = name === 'sendRunMessage' ? { run_id: own.childRunId, message: 'a' } : (bodies[name] ?? {});
    return { path, options: { body } };
  };
}
