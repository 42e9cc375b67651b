import { builtinHarness } from '@runyard/contract/agent/harness-presets/builtin';
import type { FactoryAgent } from '@runyard/contract/factories/factories';
import type { AmbientAgentConfig } from '@runyard/contract/runs/config';
import { isDefinedSkill } from '@runyard/definitions/defined-skill';

/** The parts from which the configuration of a factory's run is made. */
export interface FactoryRunParts {
  /** `agent_defaults` of the factory. */
  readonly defaults: AmbientAgentConfig;
  readonly agent: Pick<FactoryAgent, 'prompt' | 'config'>;
  /** Members of the automation's configuration, which override the others. */
  readonly overrides?: AmbientAgentConfig;
}

/**
 * Returns the configuration of a run. Members of the agent replace the same members of the factory's defaults, and the overrides
 * replace members of both. Exceptions: the agent's prompt is added after the base prompt of the defaults. If the type of the harness
 * stays the same, its members are replaced one by one. If skills are replaced, skills of the factory's definition are kept. An empty
 * `worker_host` means any worker. An empty `reasoning_level` means the default level of the harness.
 */
export function configOfFactoryRun({ defaults, agent, overrides = {} }: FactoryRunParts): AmbientAgentConfig {
  const basePrompt = [defaults.base_prompt, agent.config.base_prompt, agent.prompt]
    .map((text) => text?.trim() ?? '')
    .filter((text) => text !== '')
    .join('\n\n');
  const ofAgent = { ...agent.config, ...(basePrompt === '' ? {} : { base_prompt: basePrompt }) };
  return replaceMembers(replaceMembers(defaults, ofAgent), overrides);
}

function replaceMembers(inherited: AmbientAgentConfig, own: AmbientAgentConfig): AmbientAgentConfig {
  const remaining = { ...inherited };
  // Remove an inherited member if the own configuration sets another member with the same meaning, because a run accepts only one of the two.
  if (own.skill_spec !== undefined) delete remaining.skills;
  if (own.skills !== undefined) delete remaining.skill_spec;
  if (own.harness?.model_id !== undefined) delete remaining.model_id;
  const harness = mergeHarness(inherited.harness, own.harness);
  const merged = { ...remaining, ...own, ...(harness === undefined ? {} : { harness }) };
  const defined = inherited.skills?.filter(isDefinedSkill) ?? [];
  if (defined.length === 0 || (own.skills ?? own.skill_spec) === undefined) return merged;
  const { skill_spec: first, skills = [], ...others } = merged;
  return { ...others, skills: [...new Set([...(first === undefined ? [] : [first]), ...skills, ...defined])] };
}

type Harness = AmbientAgentConfig['harness'];

function mergeHarness(inherited: Harness, own: Harness): Harness {
  if (own === undefined || inherited === undefined) return own ?? inherited;
  const isOther = own.type !== undefined && own.type !== (inherited.type ?? builtinHarness);
  const { reasoning_level, ...merged } = isOther ? own : { ...inherited, ...own };
  return { ...merged, ...(reasoning_level ? { reasoning_level } : {}) };
}
