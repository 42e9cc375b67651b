/**
 * A factory as its definition files describe it. The members have the same names as the keys in the files. Defaults are filled in, and
 * members that only inherit a value are absent.
 */

import type { AgentFile } from '@runyard/contract/factories/files/agent-file';
import type { AutomationFile } from '@runyard/contract/factories/files/automation-file';
import type { EnvironmentFile } from '@runyard/contract/factories/files/environment-file';
import type { FactoryFile } from '@runyard/contract/factories/files/factory-file';
import type { RunnerFile } from '@runyard/contract/factories/files/runner-file';
import type { WebhookFile } from '@runyard/contract/factories/files/webhook-file';
import type { GithubEvent, GithubFilter, Matcher } from '@runyard/contract/webhooks/github-events';
import type { z } from 'zod';

/** The content of `factory.yaml`, without its key `schemaVersion`. */
export type DefinedFactory = Omit<z.output<typeof FactoryFile>, 'schemaVersion'>;

/** An agent. `prompt` may be empty. The `agentType` MAIN of a file is stored as FOREMAN, because both mean the same. */
export type DefinedAgent = Omit<z.output<typeof AgentFile>, 'agentType'> & {
  readonly name: string;
  readonly agentType: Exclude<z.output<typeof AgentFile>['agentType'], 'MAIN' | undefined>;
  readonly prompt: string;
};

/**
 * A trigger of an automation. The `filter` of a webhook or of an unknown provider is stored unchanged. `webhooks`: names of webhooks of
 * the definition, which `withUids` replaces by UIDs.
 */
export type DefinedTrigger =
  | {
      readonly provider: 'webhook';
      readonly event: 'received';
      readonly filter: {
        readonly webhooks?: readonly string[];
        readonly webhook_ids?: readonly string[];
        readonly events?: Matcher;
        readonly payload?: unknown;
      };
    }
  | {
      readonly provider: 'schedule';
      readonly event: 'cron_fired';
      readonly schedule: { readonly name?: string; readonly cron: string; readonly timezone?: string };
    }
  | {
      readonly provider: 'schedule';
      readonly event: 'cron_fired';
      readonly filter: Readonly<Record<string, unknown>>;
    }
  | {
      readonly provider: 'factory';
      readonly event: 'work_item_stage_changed';
      readonly filter?: { readonly stages?: Matcher };
    }
  | { readonly provider: 'github'; readonly event: GithubEvent; readonly filter?: GithubFilter }
  | { readonly provider: string; readonly event: string; readonly filter?: Readonly<Record<string, unknown>> };

/** An automation. Without `agent`, the foreman executes its runs. */
export type DefinedAutomation = Omit<z.output<typeof AutomationFile>, 'enabled' | 'triggers'> & {
  readonly name: string;
  readonly enabled: boolean;
  readonly triggers: readonly DefinedTrigger[];
  readonly prompt: string;
};

export type DefinedWebhook = Omit<z.output<typeof WebhookFile>, 'authMode' | 'enabled'> & {
  readonly name: string;
  readonly authMode: NonNullable<z.output<typeof WebhookFile>['authMode']>;
  readonly enabled: boolean;
};

export type DefinedRunner = z.output<typeof RunnerFile> & { readonly name: string };

/** An environment; `name` is the name of its file. The name in `config` is its name in the team. */
export interface DefinedEnvironment {
  readonly name: string;
  readonly config: Omit<z.output<typeof EnvironmentFile>, 'name'> & { readonly name: string };
}

/** A file of a skill; `path` begins with `skills/` or `agents/<name>/skills/`. */
export interface SkillFile {
  readonly path: string;
  readonly text: string;
}

/** A whole definition. Skills are sorted by path, and all other lists by name. */
export interface FactoryDefinition {
  readonly factory: DefinedFactory;
  readonly agents: readonly DefinedAgent[];
  readonly automations: readonly DefinedAutomation[];
  readonly webhooks: readonly DefinedWebhook[];
  readonly runners: readonly DefinedRunner[];
  readonly environments: readonly DefinedEnvironment[];
  readonly skills: readonly SkillFile[];
}
