import type { AmbientAgentConfig } from '@runyard/contract/runs/config';

/**
 * Returns the specs of a run's skills, each once. The skill that the run follows comes first. Only this function decides which skills a
 * run has.
 */
export function skillsOfRun(
  config: Pick<AmbientAgentConfig, 'skill_spec' | 'skills'>,
  /** The member `skill` of the request, which replaces `config.skill_spec`. */
  skill?: string,
): readonly string[] {
  const first = skill ?? config.skill_spec;
  return [...new Set([...(first === undefined ? [] : [first]), ...(config.skills ?? [])])];
}
