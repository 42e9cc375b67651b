import { z } from 'zod';

/** Provider of a model. UNKNOWN: the built-in runbook, or the endpoint of RUNYARD_MODEL_BASE_URL. */
export const ModelProvider = z.enum(['OPENAI', 'ANTHROPIC', 'GOOGLE', 'UNKNOWN']).meta({
  id: 'ModelProvider',
  description: 'Provider of a model. UNKNOWN: the built-in runbook, or the endpoint of RUNYARD_MODEL_BASE_URL',
});
export type ModelProvider = z.infer<typeof ModelProvider>;

/** Why a model cannot be chosen. ADMIN_DISABLED: its provider has no key in the service's settings. */
export const ModelDisableReason = z
  .enum(['PROVIDER_OUTAGE', 'OUT_OF_REQUESTS', 'ADMIN_DISABLED', 'REQUIRES_UPGRADE'])
  .meta({
    id: 'ModelDisableReason',
    description: "Why a model cannot be chosen. ADMIN_DISABLED: its provider has no key in the service's settings",
  });
export type ModelDisableReason = z.infer<typeof ModelDisableReason>;

/** Prices of a model. */
export const ModelCost = z
  .object({
    input_usd_per_mtok: z.number().describe('US dollars for a million tokens that the model reads'),
    output_usd_per_mtok: z.number().describe('US dollars for a million tokens that the model writes'),
  })
  .meta({ id: 'ModelCost', description: 'Prices of a model at the standard rate' });

/** A language model that runs can name in `config.model_id`. */
export const Model = z
  .object({
    id: z.string().describe('Id, as `config.model_id` names it'),
    display_name: z.string().describe('Name for people'),
    provider: ModelProvider,
    vision_supported: z.boolean().describe('True: the model takes images'),
    description: z
      .string()
      .optional()
      .describe('Of a model that cannot be chosen: why, and which setting changes that'),
    reasoning_level: z.string().optional().describe('How much the model thinks, in words of its provider'),
    cost: ModelCost.optional().meta({
      description: 'US dollars per million tokens at the standard rate; absent if unknown',
    }),
    disable_reason: ModelDisableReason.optional(),
  })
  .meta({ id: 'Model', description: 'A language model that runs can name' });
export type Model = z.infer<typeof Model>;

/** `GET /agent/models`. */
export const ListModelsResponse = z
  .object({
    default_model_id: z.string().meta({ description: 'Model of runs that name none' }),
    models: z.array(Model).describe('Models that this service knows, those without a key too'),
  })
  .meta({ id: 'ListModelsResponse', description: 'Models, and the default one' });
export type ListModelsResponse = z.infer<typeof ListModelsResponse>;
