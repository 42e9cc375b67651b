import type { SettingName, Settings } from '@runyard/contract/settings/settings';
import { type ListModelsResponse, probeWords } from '@runyard/contract/team/models';
import { apiKey, type Context, serviceOrigin } from '../context/context.ts';
import { readClaim } from '../data-folder/claim.ts';
import { readServiceFile } from '../data-folder/service-file.ts';
import { connect } from '../service/connect.ts';
import { harmlessLine } from '../terminal/harmless.ts';
import type { Finding } from './finding.ts';

const name = 'models';

export const waysToAddModel =
  'set RUNYARD_ANTHROPIC_API_KEY, RUNYARD_OPENAI_API_KEY or RUNYARD_GOOGLE_API_KEY,\nor RUNYARD_MODEL_BASE_URL to an OpenAI-compatible endpoint (Ollama: http://127.0.0.1:11434/v1)';

interface Provider {
  readonly name: string;
  /** The ids of the provider's models begin with this text. */
  readonly prefix: string;
  /** The setting that makes the provider available. */
  readonly setting: SettingName;
}

const providers: readonly Provider[] = [
  { name: 'Anthropic', prefix: 'anthropic/', setting: 'RUNYARD_ANTHROPIC_API_KEY' },
  { name: 'OpenAI', prefix: 'openai/', setting: 'RUNYARD_OPENAI_API_KEY' },
  { name: 'Google', prefix: 'google/', setting: 'RUNYARD_GOOGLE_API_KEY' },
  { name: 'your own endpoint', prefix: 'local/', setting: 'RUNYARD_MODEL_BASE_URL' },
];

/** Returns true if the service with this list of models has the setting of the provider. */
const isConfigured = ({ models }: ListModelsResponse, { prefix }: Provider): boolean =>
  models.some(({ id, disable_reason }) => id.startsWith(prefix) && disable_reason !== 'ADMIN_DISABLED');

/**
 * Reports the models of the running service, and how a restart in this environment would change them. Does not compare the values of
 * provider keys. Returns `null` if no service is known, or if there is no key for the service.
 */
export async function checkServiceModels(context: Context): Promise<Finding[] | null> {
  if (serviceOrigin(context) === null || apiKey(context) === null) return null;
  let list: ListModelsResponse;
  try {
    list = await connect(context).listModels({ signal: AbortSignal.timeout(10_000) });
  } catch (error) {
    const reason = harmlessLine(error instanceof Error ? error.message : String(error));
    return [{ name, level: 'note', detail: `the running service did not list its models: ${reason}` }];
  }
  const isHere = (readClaim(context.folder.supervisorFile) ?? readServiceFile(context.folder.serviceFile)) !== null;
  const change = isHere ? findingAfterRestart(list, context.settings) : null;
  return [findingOfService(list), ...(change ? [change] : [])];
}

/** Returns the finding about the models that runs of the service use now. */
export function findingOfService(list: ListModelsResponse): Finding {
  const chosen = list.models.find(({ id }) => id === list.default_model_id);
  const id = harmlessLine(list.default_model_id);
  if (chosen?.disable_reason !== undefined) {
    return {
      name,
      level: 'bad',
      detail: `running service: the default ${id} cannot be used. ${harmlessLine(chosen.description ?? '')}`.trimEnd(),
      fix: 'start the endpoint, or restart the service with another one',
    };
  }
  const found = providers.filter((provider) => isConfigured(list, provider));
  if (found.length === 0) {
    return {
      name,
      level: 'note',
      detail:
        'running service: none, so runs use `runbook`, which runs the fenced sh blocks of the prompt and nothing else',
      fix: `enter a key of a provider in the dashboard (Settings, Models), or\n${waysToAddModel},\nthen start Runyard again`,
    };
  }
  return {
    name,
    level: 'good',
    detail: [
      `running service: ${found.map((provider) => provider.name).join(', ')}; default ${id}`,
      ...probesOf(list),
    ].join('\n'),
  };
}

/** Returns a line for each model of an endpoint. The line has the facts that the service found when the service started and tested the model. */
function probesOf({ models }: ListModelsResponse): string[] {
  return models.flatMap(({ id, description = '' }) => {
    const [, found] = description.split(probeWords);
    return found === undefined ? [] : [`${harmlessLine(id)} was probed at the start: it ${harmlessLine(found, 300)}`];
  });
}

/**
 * Returns the finding that says how the models would change if the service was started again in this environment. Returns `null` if they
 * would not change.
 */
export function findingAfterRestart(list: ListModelsResponse, settings: Settings): Finding | null {
  const lines: string[] = [];
  for (const provider of providers) {
    const isSet = settings[provider.setting] !== undefined;
    const isThere = isConfigured(list, provider);
    if (isSet && !isThere)
      lines.push(`adds the models of ${provider.name}: ${provider.setting} is set here, not in the service`);
    if (!isSet && isThere)
      lines.push(`removes the models of ${provider.name}: ${provider.setting} is set in the service, not here`);
  }
  const wantedModel = settings.RUNYARD_DEFAULT_MODEL;
  const current = list.default_model_id;
  if (wantedModel !== undefined && current !== wantedModel && !current.endsWith(`/${wantedModel}`))
    lines.push(`changes the default from ${harmlessLine(current)} to ${wantedModel} (RUNYARD_DEFAULT_MODEL)`);
  if (
    current !== 'runbook' &&
    wantedModel === undefined &&
    providers.every(({ setting }) => settings[setting] === undefined)
  )
    lines.push('makes runs use `runbook`, because no model is configured here');
  if (lines.length === 0) return null;
  return {
    name: 'after restart',
    level: 'note',
    detail: `a restart with the environment of this command\n${lines.join('\n')}`,
    fix: 'set the values that you want to keep, then bin/runyard down and bin/runyard up',
  };
}
