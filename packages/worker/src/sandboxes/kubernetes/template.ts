/** Reads the operator's template for pods, and checks that it has only allowed members. */
import type { V1Pod, V1PodTemplateSpec, V1ResourceRequirements } from '@kubernetes/client-node';
import { parse } from 'yaml';
import { reservedPrefixes } from './names.ts';

type PodSpec = NonNullable<V1Pod['spec']>;

/** Members of a pod's specification that the operator may set. */
const ownMembers = [
  'nodeSelector',
  'affinity',
  'tolerations',
  'topologySpreadConstraints',
  'priorityClassName',
  'schedulerName',
  'imagePullSecrets',
  'dnsPolicy',
  'dnsConfig',
  'hostAliases',
] as const satisfies readonly (keyof PodSpec)[];

/** A checked template. */
export interface PodTemplate {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly spec: Pick<PodSpec, (typeof ownMembers)[number]>;
  /** Resources of the agent's container, except for memory and disk. */
  readonly resources: { readonly requests: Record<string, string>; readonly limits: Record<string, string> };
  readonly imagePullPolicy?: string;
}

export const emptyTemplate: PodTemplate = {
  labels: {},
  annotations: {},
  spec: {},
  resources: { requests: {}, limits: {} },
};

/** Resources that the template must not set, because Runyard sets them from its own limits. */
const ownResources = ['memory', 'ephemeral-storage'];

/**
 * Reads a template (YAML or JSON). Throws an error that names the member if the template has an unknown member or a member that only
 * Runyard may set.
 */
export function readTemplate(text: string): PodTemplate {
  const given: unknown = parse(text);
  const template = objectAt('template', given) as V1PodTemplateSpec;
  refuseOthers('', template, ['apiVersion', 'kind', 'metadata', 'spec']);
  const { metadata = {}, spec = {} as PodSpec } = template;
  refuseOthers('metadata.', objectAt('metadata', metadata), ['labels', 'annotations']);
  refuseOthers('spec.', objectAt('spec', spec), [...ownMembers, 'containers']);
  const { containers = [], ...rest } = spec as Partial<PodSpec>;
  if (!Array.isArray(containers)) throw new Error('spec.containers: must be a list');
  const [agent, ...others] = containers;
  if (others.length > 0 || (agent !== undefined && agent.name !== 'agent'))
    throw new Error('spec.containers: may have only one container, with the name `agent`; Runyard adds the others');
  if (agent !== undefined) refuseOthers('spec.containers[0].', agent, ['name', 'resources', 'imagePullPolicy']);
  return {
    labels: texts('metadata.labels', metadata.labels),
    annotations: texts('metadata.annotations', metadata.annotations),
    spec: rest,
    resources: readResources(agent?.resources),
    ...(agent?.imagePullPolicy === undefined ? {} : { imagePullPolicy: agent.imagePullPolicy }),
  };
}

function readResources(given: V1ResourceRequirements = {}): PodTemplate['resources'] {
  const at = 'spec.containers[0].resources';
  refuseOthers(`${at}.`, objectAt(at, given), ['requests', 'limits']);
  const read = (kind: 'requests' | 'limits') => {
    const amounts = objectAt(`${at}.${kind}`, given[kind] ?? {});
    for (const name of ownResources)
      if (name in amounts)
        throw new Error(`${at}.${kind}.${name}: Runyard sets it from RUNYARD_SANDBOX_… and the environment; remove it`);
    return Object.fromEntries(Object.entries(amounts).map(([name, amount]) => [name, String(amount)]));
  };
  return { requests: read('requests'), limits: read('limits') };
}

function refuseOthers(prefix: string, given: object, allowed: readonly string[]): void {
  const other = Object.keys(given).find((name) => !allowed.includes(name));
  if (other !== undefined)
    throw new Error(
      `${prefix}${other}: Runyard decides this member, or does not know it; remove it. Allowed here: ${allowed.join(', ')}`,
    );
}

function objectAt(at: string, given: unknown): Record<string, unknown> {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) throw new Error(`${at}: must be an object`);
  return given as Record<string, unknown>;
}

function texts(at: string, given: unknown = {}): Record<string, string> {
  const entries = Object.entries(objectAt(at, given));
  for (const [name, value] of entries) {
    if (typeof value !== 'string') throw new Error(`${at}.${name}: must be text`);
    if (reservedPrefixes.some((prefix) => name.startsWith(prefix)))
      throw new Error(`${at}.${name}: this name is reserved for Runyard and the cluster; remove it`);
  }
  return Object.fromEntries(entries) as Record<string, string>;
}
