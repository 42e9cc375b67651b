import { readPolicyFile } from '@runyard/service/content-policy-file';
import { ageIfOld } from '@runyard/service/model-catalogue';
import { readKnownModels } from '@runyard/service/operator-models';
import { readSignOnFile } from '@runyard/service/sign-on-file';
import type { Context } from '../context.ts';
import type { Finding } from './finding.ts';

/** Reports an old catalogue of models, and faults of RUNYARD_MODELS_FILE. */
export async function checkModelCatalogue(context: Pick<Context, 'settings'>, now: Date): Promise<Finding[]> {
  const name = 'model catalogue';
  const read = await readKnownModels(context.settings.RUNYARD_MODELS_FILE);
  if (!read.ok) return [{ name, level: 'bad', detail: read.problems.join('\n') }];
  const days = ageIfOld(read.madeOn, now);
  if (days === null) return [{ name, level: 'fact', detail: `names and prices of ${read.madeOn}` }];
  return [
    {
      name,
      level: 'note',
      detail: `names and prices are of ${read.madeOn}, ${days} days ago: new models are missing, and costs may be wrong`,
      fix: 'update Runyard, or correct models with RUNYARD_MODELS_FILE (docs/models.md)',
    },
  ];
}

/** Reports faults of RUNYARD_CONTENT_POLICY_FILE. */
export async function checkContentPolicy(context: Pick<Context, 'settings'>): Promise<Finding[]> {
  const name = 'content policy';
  const file = context.settings.RUNYARD_CONTENT_POLICY_FILE;
  if (file === undefined) return [];
  const read = await readPolicyFile(file);
  if (!read.ok) return [{ name, level: 'bad', detail: read.problems.join('\n') }];
  const { rules, classifier } = read.value;
  return [{ name, level: 'good', detail: `${rules.length} rules${classifier ? ' and a classifier (not asked)' : ''}` }];
}

/** Reports faults of RUNYARD_OIDC_FILE. Sends no requests to the providers. */
export async function checkSignOn(context: Pick<Context, 'settings'>): Promise<Finding[]> {
  const name = 'single sign-on';
  const file = context.settings.RUNYARD_OIDC_FILE;
  if (file === undefined) return [];
  const read = await readSignOnFile(file);
  if (!read.ok) return [{ name, level: 'bad', detail: read.problems.join('\n') }];
  const { providers, teams } = read.value;
  return [
    { name, level: 'good', detail: `${providers.length} providers (not asked), and rules for ${teams.length} teams` },
  ];
}
