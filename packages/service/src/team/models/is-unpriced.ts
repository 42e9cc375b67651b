import type { Models } from './models.ts';

/** Returns true if requests to the model cost something that is not known, so that no budget in dollars can be kept. */
export function isUnpriced(models: Pick<Models, 'target'>, modelId: string): boolean {
  const target = models.target(modelId);
  return target !== undefined && target.price === undefined;
}
