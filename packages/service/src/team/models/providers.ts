import type { LookupFunction } from 'node:net';
import type { AgentModel } from '@runyard/contract/agent/agent-protocol';
import type { Settings } from '@runyard/contract/settings/settings';
import type { ModelProviderName } from '@runyard/contract/team/model-providers';
import type { ModelProvider } from '@runyard/contract/team/models';
import { systemNames } from '@runyard/system/names/resolver';
import { proxyOf } from '@runyard/system/outgoing/outgoing';
import { type AddressCheck, findAddresses, lookupOf } from '../../platform/check-address.ts';

/** Name of a provider: the part of a model id before the slash, and a segment of the gateway's path. */
export type ProviderName = ModelProviderName;

type KeySetting =
  | 'RUNYARD_ANTHROPIC_API_KEY'
  | 'RUNYARD_OPENAI_API_KEY'
  | 'RUNYARD_GOOGLE_API_KEY'
  | 'RUNYARD_MODEL_KEY';
type UrlSetting =
  | 'RUNYARD_ANTHROPIC_BASE_URL'
  | 'RUNYARD_OPENAI_BASE_URL'
  | 'RUNYARD_GOOGLE_BASE_URL'
  | 'RUNYARD_MODEL_BASE_URL';

/** Properties of a provider that do not depend on the settings. */
export interface ProviderKind {
  readonly name: ProviderName;
  readonly contractName: ModelProvider;
  /** Name in sentences. */
  readonly displayName: string;
  /** Version in the paths of the provider, which is added to a base URL that does not end with it. Absent: the base URL is used unchanged. */
  readonly version?: string;
  /** The protocol that the built-in harness uses. Other harnesses may use another protocol that the gateway supports for the provider. */
  readonly protocol: AgentModel['protocol'];
  /** Base URL for the provider's SDK, as a path below the server root. */
  readonly gatewayPath: string;
  /** Names of the settings that the provider needs, for error texts. */
  readonly neededSetting: KeySetting | 'RUNYARD_MODEL_BASE_URL';
  /** Name of the setting with the provider's credential, for error texts. */
  readonly keySetting: KeySetting;
  readonly urlSetting: UrlSetting;
}

export const providerKinds: Readonly<Record<ProviderName, ProviderKind>> = Object.freeze({
  anthropic: {
    name: 'anthropic',
    contractName: 'ANTHROPIC',
    displayName: 'Anthropic',
    version: 'v1',
    protocol: 'anthropic',
    gatewayPath: '/api/v1/gateway/anthropic/v1',
    neededSetting: 'RUNYARD_ANTHROPIC_API_KEY',
    keySetting: 'RUNYARD_ANTHROPIC_API_KEY',
    urlSetting: 'RUNYARD_ANTHROPIC_BASE_URL',
  },
  openai: {
    name: 'openai',
    contractName: 'OPENAI',
    displayName: 'OpenAI',
    version: 'v1',
    protocol: 'openai-responses',
    gatewayPath: '/api/v1/gateway/openai/v1',
    neededSetting: 'RUNYARD_OPENAI_API_KEY',
    keySetting: 'RUNYARD_OPENAI_API_KEY',
    urlSetting: 'RUNYARD_OPENAI_BASE_URL',
  },
  google: {
    name: 'google',
    contractName: 'GOOGLE',
    displayName: 'Google',
    version: 'v1beta',
    protocol: 'google',
    gatewayPath: '/api/v1/gateway/google/v1beta',
    neededSetting: 'RUNYARD_GOOGLE_API_KEY',
    keySetting: 'RUNYARD_GOOGLE_API_KEY',
    urlSetting: 'RUNYARD_GOOGLE_BASE_URL',
  },
  local: {
    name: 'local',
    contractName: 'UNKNOWN',
    displayName: 'The endpoint',
    protocol: 'openai-compatible',
    gatewayPath: '/api/v1/gateway/local/v1',
    neededSetting: 'RUNYARD_MODEL_BASE_URL',
    keySetting: 'RUNYARD_MODEL_KEY',
    urlSetting: 'RUNYARD_MODEL_BASE_URL',
  },
});

/** A configured provider. This object contains the real credential, so never log it and never send it to a sandbox. */
export interface Upstream {
  /** The base URL of the provider with the version, which replaces the gateway's path: `https://api.anthropic.com/v1`. */
  readonly baseUrl: string;
  /** Absent if the endpoint needs no credential. */
  readonly key?: string;
  /** Present: a person chose the address in the dashboard or by the API, so each connection checks it. Absent: the operator chose it. */
  readonly check?: AddressCheck;
}

/**
 * Returns the look-up of addresses for a request to a provider. Checks the address that a person chose.
 * @throws RefusedAddress
 */
export async function lookupFor(
  { check }: { readonly check?: AddressCheck | undefined },
  url: URL,
  signal: AbortSignal,
): Promise<LookupFunction> {
  if (check === undefined) return systemNames.lookup;
  const addresses = await findAddresses(url, check, signal);
  // A proxy looks up the name itself.
  return proxyOf(url) === undefined ? lookupOf(addresses) : systemNames.lookup;
}

/** Returns the host and port of a provider for messages, but not the path, user or key in its URL. */
export function endpointOf({ baseUrl }: Pick<Upstream, 'baseUrl'>): string {
  const { protocol, hostname, port } = new URL(baseUrl);
  return `${hostname}:${port || (protocol === 'https:' ? 443 : 80)}`;
}

/** The part of the settings that models need. */
export type ModelSettings = Pick<
  Settings,
  | KeySetting
  | UrlSetting
  | 'RUNYARD_MODELS'
  | 'RUNYARD_MODELS_FILE'
  | 'RUNYARD_DEFAULT_MODEL'
  | 'RUNYARD_UNKNOWN_MODEL_PRICE'
>;

/** Returns the base URL of a provider with the version with which its paths begin. */
export function versionedUrl({ version }: ProviderKind, base: string): string {
  return version === undefined || base.endsWith(`/${version}`) ? base : `${base}/${version}`;
}

export type Providers = Readonly<Partial<Record<ProviderName, Upstream>>>;

/** Returns the base URL of a provider in the settings; undefined if there is none. */
export function baseUrlOf(settings: ModelSettings, { urlSetting }: ProviderKind): string | undefined {
  return settings[urlSetting];
}

/** Returns the providers to which the settings give access. */
export function upstreamsOf(settings: ModelSettings): Providers {
  const upstreams: Partial<Record<ProviderName, Upstream>> = {};
  for (const kind of Object.values(providerKinds)) {
    const base = baseUrlOf(settings, kind);
    if (base === undefined || settings[kind.neededSetting] === undefined) continue;
    const key = settings[kind.keySetting];
    upstreams[kind.name] = { baseUrl: versionedUrl(kind, base), ...(key === undefined ? {} : { key }) };
  }
  return upstreams;
}

/** Groups of providers whose endpoints accept the same requests, except for the name of the model. */
const families: Readonly<Record<ProviderName, string>> = {
  anthropic: 'anthropic',
  openai: 'openai',
  google: 'google',
  local: 'openai',
};

/** Returns whether a harness that uses one model could use the other model at the same endpoint. */
export function speakSameProtocol(one: string, other: string): boolean {
  const [left, right] = [one, other].map((id) => families[id.slice(0, id.indexOf('/')) as ProviderName]);
  return left !== undefined && left === right;
}
