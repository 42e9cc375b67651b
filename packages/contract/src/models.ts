import { z } from 'zod';

/** Provider of a model. UNKNOWN: the built-in runbook, or the endpoint of RUNYARD_MODEL_BASE_URL. */
export const ModelProvider = z.enum(['OPENAI', 'ANTHROPIC', 'GOOGLE', 'UNKNOWN']).meta({ id: 'ModelProvider' });
export type ModelProvider = z.infer<typeof ModelProvider>;

/** Why a model cannot be chosen. ADMIN_DISABLED: its provider has no key in the service's settings. */
export const ModelDisableReason = z
  .enum(['PROVIDER_OUTAGE', 'OUT_OF_REQUESTS', 'ADMIN_DISABLED', 'REQUIRES_UPGRADE'])
  .meta({ id: 'ModelDisableReason' });
export type ModelDisableReason = z.infer<typeof ModelDisableReason>;

/** Prices of a model. */
export const ModelCost = z
  .object({
    input_usd_per_mtok: z.number(),
    output_usd_per_mtok: z.number(),
  })
  .meta({ id: 'ModelCost' });

/** A language model that runs can name in `config.model_id`. */
export const Model = z
  .object({
    id: z.string(),
    display_name: z.string(),
    provider: ModelProvider,
    vision_supported: z.boolean(),
    description: z.string().optional(),
    reasoning_level: z.string().optional(),
    cost: ModelCost.optional().meta({
      description: 'US dollars per million tokens at the standard rate; absent if unknown',
    }),
    disable_reason: ModelDisableReason.optional(),
  })
  .meta({ id: 'Model' });
export type Model = z.infer<typeof Model>;

/** `GET /agent/models`. */
export const ListModelsResponse = z
  .object({
    default_model_id: z.string().meta({ description: 'Model of runs that name none' }),
    models: z.array(Model),
  })
  .meta({ id: 'ListModelsResponse' });
export type ListModelsResponse = z.infer<typeof ListModelsResponse>;
