/** Test support: makes the files of definitions, and applies them to a factory. */
import type { Automation } from '@runyard/contract/automations/automations';
import type { Factory } from '@runyard/contract/factories/factories';
import type { ApplyDefinitionResponse, FactoryDefinitionItem } from '@runyard/contract/factories/factory-definitions';
import type { ListWebhooksResponse } from '@runyard/contract/webhooks/webhooks';
import { expect } from 'vitest';
import type { TestService } from './service.ts';

export type Files = Readonly<Record<string, string | undefined>>;

export const factoryFile =
  'schemaVersion: v1alpha1\nname: Billing\nrepositories: []\nagentDefaults:\n  model: runbook\n';
export const baseFiles: Files = {
  'factory.yaml': factoryFile,
  'agents/foreman/agent.md': '---\nagentType: FOREMAN\n---\n\nDivide the work.\n',
  'agents/reviewer/agent.md': '---\nagentType: REVIEW\nworkerHost: mac\n---\n\nReview.\n',
  'webhooks/alerts.yaml': 'secretName: ALERTS\n',
};
/** Returns the file of an automation that reads the deliveries of a webhook. */
export const automationFile = (uid: string, agent = 'reviewer') =>
  `---\nagent: ${agent}\ntriggers:\n  - provider: webhook\n    event: received\n    filter:\n      webhook_ids: [${uid}]\n---\n\nLook at the alert.\n`;

/** Returns the files whose content is not undefined, with the folder before their paths. `folder` ends with `/`. */
export const filesOf = (content: Files, folder = ''): Record<string, string> =>
  Object.fromEntries(
    Object.entries(content).flatMap(([file, text]) => (text === undefined ? [] : [[folder + file, text]])),
  );

/** Returns the body of a request that applies these files. */
export const toBody = (files: Files, more: object = {}) => ({
  files: Object.entries(files).flatMap(([file, content]) => (content === undefined ? [] : [{ path: file, content }])),
  ...more,
});

interface FileFault {
  readonly path: string;
  readonly line: number;
  readonly message: string;
}

/** Returns functions that apply definitions to the factory that `open` has created last, and read its state. */
export function testDefinitions(service: TestService) {
  let path = '';

  const setSecret = (name: string, value: string, scope = 'team') =>
    service.request('PUT', `/secrets/${name}`, { body: { value, scope } });

  async function apply(files: Files, more: object = {}): Promise<ApplyDefinitionResponse> {
    const answer = await service.request<ApplyDefinitionResponse>('PUT', `${path}/definition`, {
      body: toBody(files, more),
    });
    if (answer.status !== 200) throw new Error(answer.text);
    return answer.body;
  }

  async function faultsOf(files: Files, key?: string): Promise<string[]> {
    const answer = await service.request<{ errors: FileFault[] }>('PUT', `${path}/definition`, {
      body: toBody(files),
      ...(key === undefined ? {} : { key }),
    });
    expect(answer.status).toBe(422);
    return answer.body.errors.map(({ path: file, line, message }) => `${file}:${line}: ${message}`);
  }

  const factory = async () => (await service.request<Factory>('GET', path)).body;
  const webhooks = async () => (await service.request<ListWebhooksResponse>('GET', `${path}/webhooks`)).body.webhooks;
  const webhookUid = async () => (await webhooks())[0]?.uid ?? '';
  const automations = async () =>
    (await service.request<{ automations: Automation[] }>('GET', `${path}/automations`)).body.automations;
  const stored = async () => (await service.request<FactoryDefinitionItem>('GET', `${path}/definition`)).body;

  /** Deletes all factories, creates an empty one, and returns its path. */
  const open = async (): Promise<string> => {
    await service.deps.db.query('DELETE FROM factories');
    const createdFactory = await service.request<Factory>('POST', '/factory', { body: { name: 'Empty' } });
    path = `/factory/${createdFactory.body.uid}`;
    await setSecret('ALERTS', 'a/secret/of/alerts');
    return path;
  };

  return { open, setSecret, apply, faultsOf, factory, webhooks, webhookUid, automations, stored };
}
