import { z } from 'zod';
import { GithubTools } from '../../environments/github-tools.ts';
import { maxTriggers } from '../../limits.ts';
import { NotifyRules } from '../../runs/notify.ts';
import { OverlapPolicy } from '../../schedules/schedules.ts';
import { NonBlank } from '../../wire/primitives.ts';
import { checkExclusions, executionOverrides, ResourceName } from './execution.ts';
import { CredentialStrategyOfFile } from './not-available.ts';
import { strictObject } from './strict-object.ts';
import { TriggerOfFile } from './triggers.ts';

/** The name of an inline schedule identifies it within the automation. */
export function checkScheduleNames(
  triggers: readonly { readonly provider: string; readonly schedule?: unknown }[],
  context: z.RefinementCtx,
): void {
  const seen = new Set<unknown>();
  for (const [index, trigger] of triggers.entries()) {
    if (trigger.provider !== 'schedule' || trigger.schedule === undefined) continue;
    const name: unknown = Reflect.get(Object(trigger.schedule), 'name');
    if (seen.has(name))
      context.addIssue({
        code: 'custom',
        path: [index, 'schedule', ...(name === undefined ? [] : ['name'])],
        message:
          name === undefined
            ? 'needs a name, because the automation already has a schedule without a name'
            : 'is the name of another schedule of the automation',
      });
    seen.add(name);
  }
}

/** Front matter of `automations/<name>/automation.md`. */
export const AutomationFile = strictObject({
  enabled: z.boolean().optional().describe('False: it starts no runs. Default true'),
  agent: ResourceName.optional().describe('Name of the agent in `agents/` that gets the runs. Default: the foreman'),
  triggers: z
    .array(TriggerOfFile)
    .min(1)
    .max(maxTriggers)
    .superRefine(checkScheduleNames)
    .describe(`Events that start runs, 1 to ${maxTriggers}`),
  overlap: OverlapPolicy.optional().describe('Policy while a run of the automation is live. Default allow'),
  concurrencyKey: NonBlank.max(300)
    .optional()
    .describe(
      'Field of the payload, such as `data.id`: `overlap` only counts runs whose payload has the same value in this field',
    ),
  notify: NotifyRules.optional().describe(
    'Rules that name people and event subscriptions to notify of problems: a list of `on`, `times` and `to`, as in the API. Default: no rules',
  ),
  credentialStrategy: CredentialStrategyOfFile,
  githubTools: GithubTools.optional().describe(
    'How often a run may use each tool that writes on GitHub, with the names of the API, instead of `github_tools` of the environment. {}: never',
  ),
  ...executionOverrides,
})
  .superRefine(checkExclusions)
  .meta({ not: { required: ['model', 'harness'] } });
