/** Finds the members of a request that change its cost. */
import { member } from '../usage/counts.ts';
import { objectOf, plainName } from './rules.ts';

/** Service tiers that cost at most the standard rate, or that the operator has chosen at the provider (`auto`). */
const cheapTiers = ['auto', 'default', 'standard', 'standard_only', 'flex', 'batch'];

/** Finds the member of `body` that would cost more than the run's model at the standard rate. */
export function dearer(body: unknown, providerModel: string): string | undefined {
  for (const name of ['service_tier', 'serviceTier']) {
    const tier = member(body, name);
    if (typeof tier === 'string' && !cheapTiers.includes(tier.toLowerCase())) return `${name} ${JSON.stringify(tier)}`;
  }
  const speed = member(body, 'speed');
  if (speed !== undefined && speed !== null && speed !== 'standard') return 'speed';
  const tools = member(body, 'tools');
  for (const tool of Array.isArray(tools) ? tools : []) {
    const model = member(tool, 'model');
    if (model !== undefined && model !== providerModel) return 'a tool with another model';
  }
  for (const [name, value] of generationMembers(body))
    if (['routingconfig', 'modelselectionconfig'].includes(name) && value !== null) return 'another model';
  return undefined;
}

/** Members of Google's `generationConfig`, by their names in lower case without `_`. */
function generationMembers(body: unknown): readonly (readonly [string, unknown])[] {
  return ['generationConfig', 'generation_config'].flatMap((name) =>
    Object.entries(objectOf(member(body, name)) ?? {}).map(([inner, value]) => [plainName(inner), value] as const),
  );
}

/** Returns the number of answers that a request asks for; undefined: providers could read the number in several ways. */
export function answersOf(body: unknown): number | undefined {
  const asked = [
    member(body, 'n'),
    member(body, 'best_of'),
    ...generationMembers(body).flatMap(([name, value]) => (name === 'candidatecount' ? [value] : [])),
  ];
  const numbers = asked.filter((value) => value !== undefined && value !== null);
  if (!numbers.every((value) => Number.isSafeInteger(value) && Number(value) >= 1)) return undefined;
  return Math.max(1, ...numbers.map(Number));
}
