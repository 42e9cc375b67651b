import type { ModelTarget } from '../../../team/models/models.ts';

/**
 * Returns the answer of `GET …/models`: the run's model and no other, in the provider's format. Clients ask for it before they begin.
 */
export function modelsAnswer(target: ModelTarget): unknown {
  const id = target.providerModel;
  switch (target.provider) {
    case 'anthropic': {
      const data = [{ type: 'model', id, display_name: id, created_at: '1970-01-01T00:00:00Z' }];
      return { data, has_more: false, first_id: id, last_id: id };
    }
    case 'google':
      return { models: [{ name: `models/${id}`, supportedGenerationMethods: ['generateContent', 'countTokens'] }] };
    case 'openai':
    case 'local':
      return { object: 'list', data: [{ id, object: 'model', created: 0, owned_by: target.provider }] };
  }
}
