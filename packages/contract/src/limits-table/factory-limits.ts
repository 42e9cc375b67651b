/** The limits of factories, automations and webhooks, for the table of all limits. */

import {
  maxFilterKeys,
  maxFilterLevels,
  maxFilterTextLength,
  maxFilterValues,
} from '../automations/payload-filter/plan.ts';
import { sourcePolling } from '../factories/factory-sources.ts';
import {
  keylessChecksPerMinute,
  maxComparisons,
  maxDefinitionBytes,
  maxDefinitionFileBytes,
  maxDefinitionFiles,
  maxDefinitionVariableLength,
  maxDefinitionVariables,
  maxDefinitionVersionBytes,
  maxDefinitionVersions,
  maxDefinitionYamlBytes,
  maxDefinitionYamlTotalBytes,
  maxDefinitionYamlValues,
  maxFactories,
  maxFactoryAgents,
  maxFactoryAutomations,
  maxFactoryEnvironments,
  maxFactoryRepositories,
  maxFactoryRunners,
  maxFactoryWebhooks,
  maxKeylessDefinitionBytes,
  maxListedTaskOutputs,
  maxListeners,
  maxStartsOfTask,
  maxStartsWithoutPerson,
  maxTaskOutputs,
  maxTriggers,
  maxWebhookBytes,
  maxWebhookDeliveriesPerMinute,
} from '../limits.ts';
import { invalid, type Limit, setting, size, tooLarge } from './limit-rows.ts';

const definitionFault = 'a fault of the definition';

/** The limits, in the order of the page `docs/limits.md`. */
export const factoryLimits: readonly Limit[] = [
  {
    of: 'definition files of a factory',
    most: `${maxDefinitionFiles}, ${size(maxDefinitionFileBytes)} each, ${size(maxDefinitionBytes)} together`,
    above: definitionFault,
  },
  {
    of: 'looks at the repository that a factory takes its definition from',
    most: `one in ${sourcePolling.least} seconds, and in 5 seconds where pushes are reported`,
    above: `${invalid}; further pushes wait`,
  },
  {
    of: 'YAML in the definition files of a factory',
    most: `${size(maxDefinitionYamlBytes)} in a file, ${size(maxDefinitionYamlTotalBytes)} and ${maxDefinitionYamlValues} values together`,
    above: definitionFault,
  },
  {
    of: 'check of definition files without a key',
    most: `${size(maxKeylessDefinitionBytes)}; in a minute ${keylessChecksPerMinute.address} of an address, and ${keylessChecksPerMinute.total} of all`,
    above: `${tooLarge}; 429 for the number`,
  },
  {
    of: 'what a factory defines',
    most: `${maxFactoryAgents} agents, ${maxFactoryAutomations} automations, ${maxFactoryWebhooks} webhooks, ${maxFactoryRunners} runners, ${maxFactoryEnvironments} environments, ${maxFactoryRepositories} repositories`,
    above: definitionFault,
  },
  {
    of: 'variables of a definition',
    most: `${maxDefinitionVariables}, ${maxDefinitionVariableLength} characters each`,
    above: `${definitionFault}; ${invalid} for the values of a request`,
  },
  {
    of: 'versions of a definition that are kept',
    most: `${maxDefinitionVersions}, each with files of ${size(maxDefinitionVersionBytes)}`,
    above: 'the oldest ones are deleted; the files of a larger version are not kept',
  },
  {
    of: 'starts of an automation by the moves of one task in an hour',
    most: `${maxStartsOfTask}`,
    above: 'the start is skipped',
  },
  {
    of: 'starts of an automation for one pull request since a person last acted there, if its trigger has no `own_pull_request`',
    most: `${maxStartsWithoutPerson}`,
    above: 'no run starts; the log of the webhook has the reason',
  },
  {
    of: 'automations that name one schedule of the team in `schedule_ids`',
    most: `${maxListeners}`,
    above: `${invalid}, or a fault of the definition`,
  },
  { of: 'triggers of an automation', most: `${maxTriggers}`, above: definitionFault },
  {
    of: 'payload filter',
    most: `${maxFilterLevels} levels, ${maxFilterKeys} keys, ${maxFilterValues} values in a list, ${maxFilterTextLength} characters in a key or value`,
    above: definitionFault,
  },
  {
    of: 'comparisons of a payload filter with one body',
    most: `${maxComparisons}`,
    above: 'the body does not match, and the explanation shows the reason',
  },
  { of: 'factories of a team', most: `${maxFactories}`, above: '409' },
  {
    of: 'outputs of a task of a factory in an answer',
    most: `${maxTaskOutputs}, ${maxListedTaskOutputs} of each task in a list`,
    above: 'the oldest ones are left out',
  },
  { of: 'automations of a factory', most: `${maxFactoryAutomations}`, above: '409' },
  { of: 'webhooks of a factory', most: `${maxFactoryWebhooks}`, above: '409' },
  { of: 'body of a delivery to a webhook', most: size(maxWebhookBytes), above: tooLarge },
  { of: 'deliveries to a webhook in a minute', most: `${maxWebhookDeliveriesPerMinute}`, above: '429' },
  { of: 'failed authentications at a webhook in a minute', most: `${maxWebhookDeliveriesPerMinute}`, above: '429' },
  {
    of: 'stored payloads of a webhook',
    most: setting('RUNYARD_WEBHOOK_PAYLOADS_MB'),
    above: 'the oldest ones are deleted, but never the latest 50; their deliveries stay in the log',
  },
];
