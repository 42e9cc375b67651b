import { isAtLeast, type Role } from '@runyard/contract/wire/access';
import type { TeamRules } from './sign-on-file.ts';

/**
 * Returns the role of a person in each team that rules manage; null if no rule gives the person a role in the team. If several rules match,
 * the highest role counts. Groups are compared exactly, character by character: a group with a similar name gives no role.
 */
export function rolesByRules(
  teams: readonly TeamRules[],
  provider: string,
  groups: readonly string[],
): ReadonlyMap<string, Role | null> {
  const given = new Set(groups);
  return new Map(
    teams.map(({ team, rules }) => {
      const matching = rules.filter((rule) => rule.provider === provider && given.has(rule.group));
      const highest = matching.reduce<Role | null>(
        (role, rule) => (role !== null && isAtLeast(role, rule.role) ? role : rule.role),
        null,
      );
      return [team, highest];
    }),
  );
}
