import { useModels } from './lists.ts';

/** Reads the models that a run can use now, for example because the service has a key of their provider. */
export function useUsableModels() {
  const models = useModels();
  const { data } = models;
  const usable = data?.models.filter(({ disable_reason: reason }) => reason === undefined) ?? [];
  return { ...models, data: data && { ...data, models: usable } };
}
