import type { AgentModel } from '@runyard/contract/agent/agent-protocol';
import { builtinHarness } from '@runyard/contract/agent/harness-presets/builtin';
import type { HarnessPreset } from '@runyard/contract/agent/harness-presets/preset';
import {
  findHarness,
  findPreset,
  harnessTypes,
  variablesOfPreset,
} from '@runyard/contract/agent/harness-presets/presets';
import { policyOfHarness } from '@runyard/contract/runs/compare-approvals';
import type { AmbientAgentConfig } from '@runyard/contract/runs/config';
import type { Fault } from '../../../platform/fault.ts';

/** The harness of a run, one of `harnessTypes`, and its preset if it has one. */
export type HarnessCheck =
  | { readonly ok: true; readonly harness: string; readonly preset?: HarnessPreset }
  | { readonly ok: false; readonly fault: Fault };

const fault = (path: string, message: string): HarnessCheck => ({
  ok: false,
  fault: { path: `config.${path}`, message },
});

/**
 * Returns the harness of a run: the built-in harness unless the configuration names another one; or the fault of a configuration that the
 * harness cannot use.
 */
export function checkHarness(config: AmbientAgentConfig): HarnessCheck {
  const { approval_policy: chosen, approval_rules: rules } = config;
  if (rules !== undefined && chosen !== 'ask' && chosen !== 'auto-deny')
    return fault('approval_rules', 'needs approval_policy: ask (a person decides) or auto-deny');
  const { type = builtinHarness, command } = config.harness ?? {};
  const harness = findHarness(type);
  if (harness?.isBuiltIn) {
    return command === undefined
      ? { ok: true, harness: builtinHarness }
      : fault('harness.command', 'belongs to the harnesses acp and command, and to presets');
  }
  if (harness === undefined) {
    const known = harnessTypes.join(', ');
    return fault('harness.type', `unknown harness ${JSON.stringify(type.slice(0, 100))}; known are ${known}`);
  }
  if (harness.neededCommand !== undefined && command === undefined)
    return fault('harness.command', `is required: ${harness.neededCommand}`);
  const policy = policyOfHarness(config);
  const approval = harness.approvals[policy];
  if (typeof approval === 'string') return fault('approval_policy', `${policy} cannot be kept: ${approval}`);
  const preset = findPreset(type);
  return preset === undefined ? { ok: true, harness: type } : checkVariables(config, preset);
}

/** Returns the harness, or a fault if the configuration sets an environment variable that the preset sets itself. */
function checkVariables(config: AmbientAgentConfig, preset: HarnessPreset): HarnessCheck {
  const own = variablesOfPreset(preset);
  const taken = Object.keys(config.harness?.env ?? {}).find((name) => own.has(name));
  return taken === undefined
    ? { ok: true, harness: preset.type, preset }
    : fault(
        `harness.env.${taken}`,
        `is set by the harness ${preset.type} itself; leave it out, or use the harness acp`,
      );
}

/**
 * Returns the reason why a preset cannot use the run's model; undefined if it can. `protocol` is undefined if the run has no language
 * model.
 */
export function presetProblem(
  preset: HarnessPreset,
  model: { readonly id: string; readonly protocol: AgentModel['protocol'] | undefined; readonly providerModel: string },
): string | undefined {
  const speaks = Object.keys(preset.speaks) as AgentModel['protocol'][];
  if (model.protocol === undefined || !speaks.includes(model.protocol)) {
    const prefixes = speaks.map((protocol) => `${prefixOf[protocol]}/…`).join(' or ');
    return `the harness ${preset.type} cannot use ${model.id}; it needs a model ${prefixes}. GET /agent/models lists the models of this service`;
  }
  const renamed = preset.renames?.find(({ model: name }) => name.test(model.providerModel));
  return renamed && `the harness ${preset.type} cannot use ${model.id}: ${renamed.reason}`;
}

/** For each protocol: the first part of the ids of the models with this protocol. */
const prefixOf: Readonly<Record<AgentModel['protocol'], string>> = {
  anthropic: 'anthropic',
  'openai-responses': 'openai',
  google: 'google',
  'openai-compatible': 'local',
};
