import type { Models } from './models.ts';

/** Returns true if the cost of requests to the model is unknown, so that no budget in dollars can be enforced. */
export function isUnpriced(models: Pick<Models, 'target'>, modelId: string): boolean {
  const target = models.target(modelId);
  return target !== undefined && target.price === undefined;
}
