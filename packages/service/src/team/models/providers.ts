import type { AgentModel } from '@runyard/contract/agent/agent-protocol';
import type { SettingName, Settings } from '@runyard/contract/settings/settings';
import type { ModelProvider } from '@runyard/contract/team/models';

/** Name of a provider: the part of a model id before the slash, and a segment of the gateway's path. */
export type ProviderName = 'anthropic' | 'openai' | 'google' | 'local';

/** Properties of a provider that do not depend on the settings. */
export interface ProviderKind {
  readonly name: ProviderName;
  readonly contractName: ModelProvider;
  /** The protocol that the built-in harness uses. Other harnesses may use another protocol that the gateway supports for the provider. */
  readonly protocol: AgentModel['protocol'];
  /** Base URL for the provider's SDK, as a path below the server root. */
  readonly gatewayPath: string;
  /** Names of the settings that the provider needs, for error texts. */
  readonly neededSetting: SettingName;
  /** Name of the setting with the provider's credential, for error texts. */
  readonly keySetting: SettingName;
  readonly urlSetting: SettingName;
}

export const providerKinds: Readonly<Record<ProviderName, ProviderKind>> = Object.freeze({
  anthropic: {
    name: 'anthropic',
    contractName: 'ANTHROPIC',
    protocol: 'anthropic',
    gatewayPath: '/api/v1/gateway/anthropic/v1',
    neededSetting: 'RUNYARD_ANTHROPIC_API_KEY',
    keySetting: 'RUNYARD_ANTHROPIC_API_KEY',
    urlSetting: 'RUNYARD_ANTHROPIC_BASE_URL',
  },
  openai: {
    name: 'openai',
    contractName: 'OPENAI',
    protocol: 'openai-responses',
    gatewayPath: '/api/v1/gateway/openai/v1',
    neededSetting: 'RUNYARD_OPENAI_API_KEY',
    keySetting: 'RUNYARD_OPENAI_API_KEY',
    urlSetting: 'RUNYARD_OPENAI_BASE_URL',
  },
  google: {
    name: 'google',
    contractName: 'GOOGLE',
    protocol: 'google',
    gatewayPath: '/api/v1/gateway/google/v1beta',
    neededSetting: 'RUNYARD_GOOGLE_API_KEY',
    keySetting: 'RUNYARD_GOOGLE_API_KEY',
    urlSetting: 'RUNYARD_GOOGLE_BASE_URL',
  },
  local: {
    name: 'local',
    contractName: 'UNKNOWN',
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
}

/** Returns the host and port of a provider for messages, but not the path, user or key in its URL. */
export function endpointOf({ baseUrl }: Pick<Upstream, 'baseUrl'>): string {
  const { protocol, hostname, port } = new URL(baseUrl);
  return `${hostname}:${port || (protocol === 'https:' ? 443 : 80)}`;
}

/** The part of the settings that models need. */
export type ModelSettings = Pick<
  Settings,
  | 'RUNYARD_ANTHROPIC_API_KEY'
  | 'RUNYARD_OPENAI_API_KEY'
  | 'RUNYARD_GOOGLE_API_KEY'
  | 'RUNYARD_ANTHROPIC_BASE_URL'
  | 'RUNYARD_OPENAI_BASE_URL'
  | 'RUNYARD_GOOGLE_BASE_URL'
  | 'RUNYARD_MODEL_BASE_URL'
  | 'RUNYARD_MODEL_KEY'
  | 'RUNYARD_MODELS'
  | 'RUNYARD_MODELS_FILE'
  | 'RUNYARD_DEFAULT_MODEL'
  | 'RUNYARD_UNKNOWN_MODEL_PRICE'
>;

/** Returns `base` with the version with which the provider's paths begin. Adds the version only if `base` does not end with it. */
const versioned = (base: string, version: string): string =>
  base.endsWith(`/${version}`) ? base : `${base}/${version}`;

/** The configured providers. */
export function upstreamsOf(settings: ModelSettings): Readonly<Partial<Record<ProviderName, Upstream>>> {
  const upstreams: Partial<Record<ProviderName, Upstream>> = {};
  const { RUNYARD_ANTHROPIC_API_KEY, RUNYARD_OPENAI_API_KEY, RUNYARD_GOOGLE_API_KEY } = settings;
  if (RUNYARD_ANTHROPIC_API_KEY !== undefined) {
    upstreams.anthropic = {
      baseUrl: versioned(settings.RUNYARD_ANTHROPIC_BASE_URL, 'v1'),
      key: RUNYARD_ANTHROPIC_API_KEY,
    };
  }
  if (RUNYARD_OPENAI_API_KEY !== undefined) {
    upstreams.openai = { baseUrl: versioned(settings.RUNYARD_OPENAI_BASE_URL, 'v1'), key: RUNYARD_OPENAI_API_KEY };
  }
  if (RUNYARD_GOOGLE_API_KEY !== undefined) {
    upstreams.google = { baseUrl: versioned(settings.RUNYARD_GOOGLE_BASE_URL, 'v1beta'), key: RUNYARD_GOOGLE_API_KEY };
  }
  if (settings.RUNYARD_MODEL_BASE_URL !== undefined) {
    // Use this base URL unchanged, because not all compatible endpoints have the version v1 in their URL.
    const baseUrl = settings.RUNYARD_MODEL_BASE_URL;
    upstreams.local =
      settings.RUNYARD_MODEL_KEY === undefined ? { baseUrl } : { baseUrl, key: settings.RUNYARD_MODEL_KEY };
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
