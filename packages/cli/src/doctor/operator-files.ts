import { readPolicyFile } from '@runyard/service/content-policy-file';
import { ageIfOld } from '@runyard/service/model-catalogue';
import { readKnownModels } from '@runyard/service/operator-models';
import { openSignOn } from '@runyard/service/sign-on';
import type { Context } from '../context/context.ts';
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

/** Reports faults of RUNYARD_OIDC_FILE, and reads what each provider publishes, as a sign-in does. */
export async function checkSignOn(context: Pick<Context, 'settings'>): Promise<Finding[]> {
  const name = 'single sign-on';
  const file = context.settings.RUNYARD_OIDC_FILE;
  if (file === undefined) return [];
  const read = await openSignOn(file, { warn: () => {} });
  if (!read.ok) return [{ name, level: 'bad', detail: read.problems.join('\n') }];
  const { providers, teams } = read.signOn;
  const faults = await Promise.all(providers.map(async (each) => ({ name: each.name, reason: await each.check() })));
  const wrong = faults.flatMap((each) => (each.reason === null ? [] : [`${each.name}: ${each.reason}`]));
  if (wrong.length > 0)
    return [
      {
        name,
        level: 'note',
        detail: `people cannot sign in with ${wrong.join('\n')}`,
        fix: 'correct RUNYARD_OIDC_FILE or the provider (docs/sign-on.md), and restart the service',
      },
    ];
  return [{ name, level: 'good', detail: `${providers.length} providers answer, and rules for ${teams.length} teams` }];
}
