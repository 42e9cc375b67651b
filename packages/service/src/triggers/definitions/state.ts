/** Reads the present webhooks and automations of a factory, and compares them with a definition. */

import type { CreateAutomationRequest } from '@runyard/contract/automations/automations';
import type { EnvironmentConfig } from '@runyard/contract/environments/environments';
import { compare } from '@runyard/contract/factories/files/faults';
import type { DefinedWebhook, FactoryDefinition } from '@runyard/definitions/definition';
import {
  compareMembers,
  type DefinedKind,
  type MemberChange,
  type PlannedChange,
} from '@runyard/definitions/plan-changes';
import { type UidsByName, withUids } from '@runyard/definitions/with-uids';
import type { Vault } from '../../platform/secrets/vault.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import { readRulesOfOwners } from '../../runs/inbox/rules.ts';
import { readEnvironmentConfigs } from '../../team/environments/named.ts';
import { findTeamSecret } from '../../team/stored-secrets/find-usable.ts';
import type { AutomationRow } from '../automations/automation-row.ts';
import { listAutomations } from '../automations/automations.ts';
import { readWebhookSecrets } from '../webhooks/ingest/secrets.ts';
import { listWebhooks, type StoredWebhook } from '../webhooks/webhooks.ts';
import { type AutomationWithRules, toAutomationMembers, toStoredMembers } from './automation-members.ts';
import type { DefinedUids } from './stored.ts';
import { fileOfRules } from './webhook-rules.ts';

/** The ids that name a factory in a request of its team. */
export interface FactoryAddress {
  readonly teamId: string;
  readonly factoryUid: string;
}

/**
 * The webhooks and automations of a factory, and the environments that its files define, by UID. Includes webhooks and automations that no
 * file defines.
 */
export interface FactoryState {
  readonly webhooks: ReadonlyMap<string, StoredWebhook>;
  readonly webhookSecrets: ReadonlyMap<string, string | null>;
  readonly automations: ReadonlyMap<string, AutomationWithRules>;
  readonly environments: ReadonlyMap<string, EnvironmentConfig>;
}

export const noUids: DefinedUids = { webhooks: {}, automations: {} };

/** Returns the UID of a webhook or automation by its name in the files. */
export const uidOf = (uids: Readonly<Record<string, string>>, name: string): string =>
  (Object.hasOwn(uids, name) ? uids[name] : undefined) ?? '';

/** Returns the UIDs of all webhooks and environments that the files name, by name. */
export const uidsByName = ({ webhooks, environments, team_environments }: DefinedUids): UidsByName => ({
  webhooks,
  environments: { ...team_environments, ...environments },
});

/** Returns the configurations of the environments that a stored definition defines, by UID. */
export const readDefinedEnvironments = (db: Queryable, teamId: string, { environments = {} }: DefinedUids) =>
  readEnvironmentConfigs(db, teamId, Object.values(environments));

/** Reads the state of a factory. `environments`: the result of `readDefinedEnvironments`. */
export async function readFactoryState(
  db: Queryable,
  vault: Vault,
  factory: FactoryAddress,
  environments: FactoryState['environments'],
): Promise<FactoryState> {
  const webhooks = await listWebhooks(db, factory.teamId, factory.factoryUid);
  const automations = await listAutomations(db, factory.teamId, factory.factoryUid);
  const automationUids = automations.map(({ uid }) => uid);
  const rules = await readRulesOfOwners(db, factory.teamId, { automationUids });
  const withRules = (automation: AutomationRow): AutomationWithRules => {
    const notify = rules.get(automation.uid);
    return notify ? { ...automation, notify } : automation;
  };
  return {
    webhooks: new Map(webhooks.map((webhook) => [webhook.uid, webhook])),
    webhookSecrets: await readWebhookSecrets(db, vault, factory),
    automations: new Map(automations.map((automation) => [automation.uid, withRules(automation)])),
    environments,
  };
}

/** The value of a secret, or the reason why there is no value. */
export type TeamSecret = { readonly value: string } | { readonly problem: string };

/** Returns the secrets of the team that the webhooks of a definition name, by the names of the secrets. */
export async function readTeamSecrets(
  db: Queryable,
  vault: Vault,
  teamId: string,
  { webhooks }: FactoryDefinition,
): Promise<ReadonlyMap<string, TeamSecret>> {
  const secrets = new Map<string, TeamSecret>();
  for (const name of new Set(webhooks.map(({ secretName }) => secretName))) {
    const found = await findTeamSecret(db, vault, teamId, name);
    secrets.set(name, typeof found === 'object' && found ? found : { problem: problemOf(found, name) });
  }
  return secrets;
}

/** Returns the message for a secret that the team does not have, or that the caller may not see. */
export const missingSecret = (name: string): string =>
  `the team has no secret ${name}; set it with PUT /secrets/${name} and the scope team`;

const problemOf = (found: 'unreadable' | null, name: string): string =>
  found === 'unreadable'
    ? `the secret ${name} was sealed with a key that this service does not have; set it again`
    : missingSecret(name);

/** Returns those members of a webhook that files can set. The form is the same for a defined and a stored webhook, so the two can be compared. */
function membersOfWebhook(webhook: DefinedWebhook | StoredWebhook) {
  if ('authMode' in webhook) {
    const { name: _name, deliveryIdHeader, eventHeader, ...members } = webhook;
    return {
      ...members,
      deliveryIdHeader: deliveryIdHeader?.toLowerCase(),
      ...(eventHeader === undefined ? {} : { eventHeader: eventHeader.toLowerCase() }),
    };
  }
  return {
    authMode: webhook.auth_mode,
    signatureScheme: webhook.signature_scheme,
    secretName: webhook.secret_name,
    deliveryIdHeader: webhook.delivery_id_header,
    ...fileOfRules(webhook),
    enabled: webhook.enabled,
  };
}

/** Returns the differences between a webhook and its file. If the secrets differ, the result says so without their values. */
export function differencesOfWebhook(
  present: StoredWebhook,
  { webhookSecrets }: FactoryState,
  defined: DefinedWebhook,
  secret: TeamSecret | undefined,
): MemberChange[] {
  const members = compareMembers(membersOfWebhook(present), membersOfWebhook(defined));
  const isOther = secret && 'value' in secret && webhookSecrets.get(present.uid) !== secret.value;
  return [...members, ...(isOther ? [{ member: 'secret' }] : []), ...nameDifference(present.name, defined.name)];
}

const nameDifference = (before: string, after: string): MemberChange[] =>
  before === after ? [] : [{ member: 'name', before, after }];

/** Returns the differences between an automation and its file. */
export function differencesOfAutomation(present: AutomationWithRules, wanted: CreateAutomationRequest): MemberChange[] {
  return [...compareMembers(toStoredMembers(present), { ...wanted })];
}

/** Returns the changes that would make the factory match its last applied definition again. */
export function driftOf(
  state: FactoryState,
  named: FactoryDefinition,
  uids: DefinedUids,
  secrets: ReadonlyMap<string, TeamSecret>,
): PlannedChange[] {
  const definition = withUids(named, uidsByName(uids));
  const automations = definition.automations.map((automation) => {
    const present = state.automations.get(uidOf(uids.automations, automation.name));
    const members = present && differencesOfAutomation(present, toAutomationMembers(definition, automation));
    return changeOf('automation', automation.name, members);
  });
  const webhooks = definition.webhooks.map((webhook) => {
    const present = state.webhooks.get(uidOf(uids.webhooks, webhook.name));
    const members = present && differencesOfWebhook(present, state, webhook, secrets.get(webhook.secretName));
    return changeOf('webhook', webhook.name, members);
  });
  const environments = definition.environments.map(({ name, config }) => {
    const present = state.environments.get(uidOf(uids.environments ?? {}, name));
    return changeOf('environment', name, present && compareMembers(present, config));
  });
  return [...automations, ...webhooks, ...environments]
    .flat()
    .toSorted((a, b) => compare(a.kind, b.kind) || compare(a.name, b.name));
}

function changeOf(kind: DefinedKind, name: string, members: readonly MemberChange[] | undefined): PlannedChange[] {
  if (members === undefined) return [{ kind, name, action: 'create' }];
  return members.length === 0 ? [] : [{ kind, name, action: 'change', members }];
}
