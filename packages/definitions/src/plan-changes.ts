/** Compares two definitions of a factory. Finds what the service would create, change and delete if the new definition was applied. */

import { compare } from '@runyard/contract/factories/files/faults';
import type { FactoryDefinition } from './definition.ts';

/** The kinds of things that a definition holds. The name of a skill is the path of the skill's file. */
export type DefinedKind = 'factory' | 'agent' | 'automation' | 'webhook' | 'runner' | 'environment' | 'skill';

/**
 * A member that differs. If `before` is absent, the current definition does not have the member. If `after` is absent, the new definition
 * does not have the member.
 */
export interface MemberChange {
  /** Path of the member, such as `agentDefaults.model`. A list counts as one member. */
  readonly member: string;
  readonly before?: unknown;
  readonly after?: unknown;
}

export type PlannedChange = { readonly kind: DefinedKind; readonly name: string } & (
  | { readonly action: 'create' | 'delete' }
  | { readonly action: 'change'; readonly members: readonly MemberChange[] }
);

/** Reasons why a new definition cannot be applied, although its files have no faults. */
export interface Refusal {
  readonly kind: DefinedKind;
  readonly name: string;
  readonly message: string;
}

export interface ChangePlan {
  /** Sorted by kind in the order of `DefinedKind`, then by name. Empty if the new definition changes nothing. */
  readonly changes: readonly PlannedChange[];
  /** If there is a refusal, the new definition must not be applied, not even in part. */
  readonly refusals: readonly Refusal[];
}

/** Plans the changes from the current definition to the new definition. For a new factory, `current` is undefined. */
export function planChanges(current: FactoryDefinition | undefined, next: FactoryDefinition): ChangePlan {
  const kinds: readonly DefinedKind[] = ['factory', 'agent', 'automation', 'webhook', 'runner', 'environment', 'skill'];
  const changes = kinds.flatMap((kind) =>
    changesOf(kind, current ? membersOf(current, kind) : new Map(), membersOf(next, kind)),
  );
  return { changes, refusals: current ? refuseRenames(current, next) : [] };
}

type Members = Readonly<Record<string, unknown>>;

/**
 * Returns everything of one kind in the definition, such as all agents. The keys are the names of the agents, the values are their members.
 * The factory has the fixed key `factory`, so that a changed name of the factory counts as a changed member.
 */
function membersOf(definition: FactoryDefinition, kind: DefinedKind): Map<string, Members> {
  switch (kind) {
    case 'factory':
      return new Map([['factory', { ...definition.factory }]]);
    case 'skill':
      return new Map(definition.skills.map(({ path, text }) => [path, { text }]));
    case 'agent':
      return byName(definition.agents);
    case 'automation':
      return byName(definition.automations);
    case 'webhook':
      return byName(definition.webhooks);
    case 'runner':
      return byName(definition.runners);
    case 'environment':
      return new Map(definition.environments.map(({ name, config }) => [name, { ...config }]));
  }
}

const byName = (list: readonly { readonly name: string }[]): Map<string, Members> =>
  new Map(list.map(({ name, ...members }) => [name, members]));

function changesOf(kind: DefinedKind, before: Map<string, Members>, after: Map<string, Members>): PlannedChange[] {
  const names = [...new Set([...before.keys(), ...after.keys()])].sort(compare);
  return names.flatMap((name): PlannedChange[] => {
    const [old, wanted] = [before.get(name), after.get(name)];
    if (old === undefined) return [{ kind, name, action: 'create' }];
    if (wanted === undefined) return [{ kind, name, action: 'delete' }];
    const members = compareMembers(old, wanted);
    return members.length === 0 ? [] : [{ kind, name, action: 'change', members }];
  });
}

/** Returns the members that differ between two versions of the same thing, such as an agent. */
export function compareMembers(before: Members, after: Members, parent = ''): MemberChange[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort(compare);
  return names.flatMap((name): MemberChange[] => {
    const member = parent === '' ? name : `${parent}.${name}`;
    const [old, wanted] = [own(before, name), own(after, name)];
    if (isMap(old) && isMap(wanted)) return compareMembers(old, wanted, member);
    if (isSame(old, wanted)) return [];
    return [
      {
        member,
        ...(old === undefined ? {} : { before: old }),
        ...(wanted === undefined ? {} : { after: wanted }),
      },
    ];
  });
}

const own = (members: Members, name: string): unknown => (Object.hasOwn(members, name) ? members[name] : undefined);

const isMap = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Compares JSON values; the order of keys does not matter, and -0 is 0. */
function isSame(one: unknown, other: unknown): boolean {
  if (Array.isArray(one) && Array.isArray(other))
    return one.length === other.length && one.every((each, index) => isSame(each, other[index]));
  if (isMap(one) && isMap(other)) return compareMembers(one, other).length === 0;
  return one === other;
}

/**
 * Refuses renamed webhooks. A webhook counts as renamed if it is removed and a new webhook has the same secret. The reason: the new
 * webhook would get another UID, but senders and automations use the UID of the old webhook.
 */
function refuseRenames(current: FactoryDefinition, next: FactoryDefinition): Refusal[] {
  const [had, has] = [current.webhooks, next.webhooks].map((list) => new Set(list.map(({ name }) => name)));
  const removed = current.webhooks.filter(({ name }) => !has?.has(name));
  return next.webhooks
    .filter(({ name }) => !had?.has(name))
    .flatMap(({ name, secretName }): Refusal[] => {
      const before = removed.find((each) => each.secretName === secretName);
      if (before === undefined) return [];
      const message = `the webhook ${before.name} cannot be renamed to ${name}: its URL and UID would change. Keep the name; or delete it in one apply, and create ${name} in the next`;
      return [{ kind: 'webhook', name, message }];
    });
}
