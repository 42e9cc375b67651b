/** Finds models by the names that programs and definitions for the public service use. */
import { makeSpelling } from '@runyard/contract/wire/spelling';
import type { Offer } from './offers.ts';

const claudeFamily = /^[a-z]{3,20}$/;
const claudeVersionFirst = /^claude-(\d+(?:-\d+)?)-([a-z]+)$/;
const versionWithHyphen = /^((?:gpt|gemini)-\d+)-(\d+)(?=-|$)/;

/** Returns the numbers in a model's name: for `claude-opus-4-5` 4 and 5. */
const versionOf = ({ providerModel }: Offer): number[] => (providerModel.match(/\d+/g) ?? []).map(Number);

function isNewer(one: readonly number[], other: readonly number[]): boolean {
  for (let at = 0; at < Math.max(one.length, other.length); at += 1) {
    const difference = (one[at] ?? 0) - (other[at] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return false;
}

/**
 * Returns the model with this alternative name: `opus`, `sonnet` and `haiku` are the newest Claude model of the family, as in Claude Code.
 * `claude-4-5-haiku` means `claude-haiku-4-5`, and `gpt-5-6-terra` means `gpt-5.6-terra`.
 */
export function findByPublicName(all: readonly Offer[], wanted: string): Offer | undefined {
  if (claudeFamily.test(wanted)) {
    const family = all.filter(
      ({ provider, providerModel }) => provider === 'anthropic' && providerModel.startsWith(`claude-${wanted}-`),
    );
    return family.reduce<Offer | undefined>(
      (newest, offer) => (newest && !isNewer(versionOf(offer), versionOf(newest)) ? newest : offer),
      undefined,
    );
  }
  const name = wanted.replace(claudeVersionFirst, 'claude-$2-$1').replace(versionWithHyphen, '$1.$2');
  return name === wanted ? undefined : all.find(({ providerModel }) => providerModel === name);
}

const publicName =
  /^(?:auto-[a-z-]{1,40}|(?:claude|gpt|gemini|grok|glm|kimi|qwen|deepseek|minimax)-[a-z0-9.-]{1,80}|opus|sonnet|haiku|opusplan)$/;
const lettersOf = (name: string): string => name.replaceAll(/[^a-z]/g, '');

/**
 * Returns whether a name that this service does not offer may be a model of the public service. Returns false if the name is a misspelt
 * name of an offered model; a different version number does not count as a misspelling.
 */
export function isPublicName(all: readonly Offer[], wanted: string): boolean {
  if (!publicName.test(wanted)) return false;
  const meant = makeSpelling(all.map(({ providerModel }) => providerModel)).suggest(wanted);
  return meant === undefined || lettersOf(meant) === lettersOf(wanted);
}
