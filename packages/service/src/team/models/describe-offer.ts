import { type ModelDisableReason, probeWords } from '@runyard/contract/team/models';
import { type ModelChoices, outageOf } from './choices.ts';
import type { Offer } from './offers.ts';
import type { Abilities } from './probe-endpoint.ts';
import type { ProviderName } from './providers.ts';

/** Returns the reason why the team cannot choose a model of a configured provider; undefined if it can. */
export function disableReason(
  choices: ModelChoices,
  modelId: string,
  provider: ProviderName,
): ModelDisableReason | undefined {
  if (choices.disabledIds.includes(modelId)) return 'ADMIN_DISABLED';
  if (choices.isOutOfRequests) return 'OUT_OF_REQUESTS';
  return outageOf(choices, provider) ? 'PROVIDER_OUTAGE' : undefined;
}

/** Returns the refusal of a model that the team has disabled. */
export const disabledMessage = (modelId: string): string =>
  `an administrator of the team has disabled the model ${modelId}; use another model (GET /agent/models), or ask an administrator to enable it`;

/** Returns the known facts about a model of a configured provider, as sentences; an empty text if there are none. */
export function describeOffer(
  { contextWindow, reasoningLevels }: Offer,
  reason: ModelDisableReason | undefined,
  abilities: Abilities | undefined,
): string {
  const sentences: string[] = [];
  if (reason === 'ADMIN_DISABLED') sentences.push('An administrator of the team disabled it.');
  if (reason === 'OUT_OF_REQUESTS') sentences.push('The team has spent its budget.');
  if (reason === 'PROVIDER_OUTAGE') sentences.push('Its provider has an outage; the service tries it again.');
  if (contextWindow !== undefined) sentences.push(`Context window: ${contextWindow.toLocaleString('en-US')} tokens.`);
  if (reasoningLevels?.length) sentences.push(`Reasoning levels: ${reasoningLevels.join(', ')}.`);
  if (abilities?.kind === 'failed') sentences.push(`${probeWords}failed, because ${abilities.reason}.`);
  if (abilities?.kind === 'probed') {
    const streams = abilities.streams ? 'streams its answer' : 'does not stream its answer';
    const calls = abilities.callsTools
      ? 'calls tools'
      : 'did not call a tool when a request required it, so agents cannot work with it';
    const usage = abilities.takesStreamOptions
      ? ''
      : ' It refuses stream_options, so the usage of its streams is estimated.';
    sentences.push(`${probeWords}${streams} and ${calls}.${usage}`);
  }
  return sentences.join(' ');
}
