import { z } from 'zod';
import { maxDisabledModels, maxModelFallbacks } from '../limits.ts';
import { NonBlank, Timestamp } from '../wire/primitives.ts';

/** Provider of a model. UNKNOWN: the built-in runbook, or the endpoint of RUNYARD_MODEL_BASE_URL. */
export const ModelProvider = z.enum(['OPENAI', 'ANTHROPIC', 'GOOGLE', 'UNKNOWN']).meta({
  id: 'ModelProvider',
  description: 'Provider of a model. UNKNOWN: the built-in runbook, or the endpoint of RUNYARD_MODEL_BASE_URL',
});
export type ModelProvider = z.infer<typeof ModelProvider>;

/** The reason why a model cannot be chosen. */
export const ModelDisableReason = z
  .enum(['PROVIDER_OUTAGE', 'OUT_OF_REQUESTS', 'ADMIN_DISABLED', 'REQUIRES_UPGRADE'])
  .meta({
    id: 'ModelDisableReason',
    description:
      "Why a model cannot be chosen. ADMIN_DISABLED: an administrator of the team disabled it, or its provider has no key in the service's settings. PROVIDER_OUTAGE: its provider does not work now. OUT_OF_REQUESTS: the team has spent its budget",
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
      .describe('Facts about the model; for a model that cannot be chosen, the reason and the setting that changes it'),
    reasoning_level: z.string().optional().describe('How much the model thinks, in words of its provider'),
    cost: ModelCost.optional().meta({
      description: 'US dollars per million tokens at the standard rate; absent if unknown',
    }),
    disable_reason: ModelDisableReason.optional(),
  })
  .meta({ id: 'Model', description: 'A language model that runs can name' });
export type Model = z.infer<typeof Model>;

const ModelId = NonBlank.max(300);

/**
 * At its start, the service sends a test request to a model and adds a sentence about the result to the model's description. These are the
 * first words of the sentence.
 */
export const probeWords = 'Probe at the start: it ';

/** The models that a team has disabled or chosen as default and fallback. */
export const TeamModelSettings = z
  .object({
    default_model_id: z
      .string()
      .optional()
      .describe('Model of runs that name none; absent: the default of the service'),
    fallback_model_ids: z
      .array(z.string())
      .describe('Models for runs without `config.model_fallbacks` while the provider of their model has an outage'),
    disabled_model_ids: z.array(z.string()).describe('Models that runs of the team may not use'),
    updated_at: Timestamp.optional().describe('When the team last changed them; absent: never'),
  })
  .meta({ id: 'TeamModelSettings', description: 'The choices of a team about models' });
export type TeamModelSettings = z.infer<typeof TeamModelSettings>;

/** Body of the request that changes a team's choices of models. */
export const UpdateTeamModelSettingsRequest = z
  .object({
    default_model_id: ModelId.nullable()
      .optional()
      .describe('Model of runs that name none; null: the default of the service. Absent: unchanged'),
    fallback_model_ids: z
      .array(ModelId)
      .max(maxModelFallbacks)
      .optional()
      .describe('All fallbacks, in their order. Absent: unchanged'),
    disable: z.array(ModelId).max(maxDisabledModels).optional().describe('Models to disable'),
    enable: z.array(ModelId).max(maxDisabledModels).optional().describe('Models to enable again'),
  })
  .meta({ id: 'UpdateTeamModelSettingsRequest', description: 'Absent members stay unchanged' });
export type UpdateTeamModelSettingsRequest = z.infer<typeof UpdateTeamModelSettingsRequest>;

/** `GET /agent/models`. */
export const ListModelsResponse = z
  .object({
    default_model_id: z.string().meta({ description: 'Model of runs that name none' }),
    models: z.array(Model).describe('Models that this service knows, including those without a key'),
  })
  .meta({ id: 'ListModelsResponse', description: 'Models, and the default one' });
export type ListModelsResponse = z.infer<typeof ListModelsResponse>;
