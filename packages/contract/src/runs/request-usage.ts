/** The usage of models by a run, and its cost. */
import { z } from 'zod';

/** The cost of model requests, by kind of token. */
const InferenceCostBreakdown = z
  .object({
    input_cost_usd: z.number().describe('US dollars for tokens that the model read'),
    output_cost_usd: z.number().describe('US dollars for tokens that the model wrote'),
    input_cache_read_cost_usd: z.number().describe("US dollars for tokens that came from the provider's cache"),
    input_cache_write_cost_usd: z.number().describe("US dollars for tokens that went to the provider's cache"),
    provider_tools_cost_usd: z
      .number()
      .optional()
      .describe("US dollars for calls of the provider's own tools, such as searches; absent: there were no such calls"),
  })
  .meta({ id: 'InferenceCostBreakdown', description: 'The cost of the requests to models, by kind of token' });

/** The tokens that one model used for a run. */
const ModelTokenUsage = z
  .object({
    model_id: z.string().describe('Model that answered'),
    total_tokens: z.int().describe('Tokens that it read and wrote'),
    usage_type: z
      .enum(['warp', 'byok', 'custom_endpoint'])
      .meta({ id: 'ModelUsageType', description: 'Whose access to a model was used' })
      .describe(
        "Whose access to the model was used. `byok`: a key of this installation at a provider. `custom_endpoint`: this installation's own endpoint. `warp`, the access of the public service, never occurs",
      ),
    tokens_by_category: z
      .record(z.string(), z.int())
      .optional()
      .describe('Tokens by the purpose of the requests. All of them are those of `primary_agent`'),
  })
  .meta({ id: 'ModelTokenUsage', description: 'The tokens that one model used for a run' });

/** The tokens and the cost of the requests of a run to one model. */
const InferenceUsage = z
  .object({
    token_count: z
      .object({
        input: z.int().describe('Tokens that the model read, without those of the cache'),
        output: z.int().describe('Tokens that the model wrote'),
        input_cache_read: z.int().describe("Tokens that came from the provider's cache"),
        input_cache_write: z.int().describe("Tokens that went to the provider's cache"),
      })
      .meta({ id: 'TokenCount', description: 'Numbers of tokens; each token counts once' }),
    cost_in_cents: z
      .object({
        input_cost_in_cents: z.number().describe('US cents for `input`'),
        output_cost_in_cents: z.number().describe('US cents for `output`'),
        input_cache_read_cost_in_cents: z.number().describe('US cents for `input_cache_read`'),
        input_cache_write_cost_in_cents: z.number().describe('US cents for `input_cache_write`'),
      })
      .meta({ id: 'CostInCents', description: 'List prices of the tokens' }),
    web_search_count: z.int().describe('Always 0: searches are not counted, only their cost is'),
    web_search_cost_in_cents: z.number().describe("US cents for calls of the provider's own tools, such as searches"),
  })
  .meta({ id: 'InferenceUsage', description: 'Tokens and cost of the requests to one model' });
export type InferenceUsage = z.infer<typeof InferenceUsage>;

const CategoryUsage = z
  .object({
    platform_usage_in_cents: z.number().describe('Always 0: this service has no price of its own'),
    byok_inference_usage: z
      .record(z.string(), InferenceUsage)
      .optional()
      .describe('By model, of models that a key of this installation opens; absent: none'),
    custom_endpoint_inference_usage: z
      .record(z.string(), InferenceUsage)
      .optional()
      .describe("By model, of models of this installation's own endpoint; absent: none"),
  })
  .meta({ id: 'CategoryUsage', description: 'The usage for one purpose' });
export type CategoryUsage = z.infer<typeof CategoryUsage>;

/** The cost of a run. Credits: 1 credit = 1 US cent. */
export const RequestUsage = z
  .object({
    inference_cost: z.number().optional().meta({ description: 'Credits' }),
    compute_cost: z.number().optional().meta({ description: 'Credits' }),
    platform_cost: z.number().optional().meta({ description: 'Credits' }),
    inference_cost_usd: z.number().optional().describe('US dollars for requests to models'),
    compute_cost_usd: z.number().optional().describe('US dollars for sandboxes'),
    platform_cost_usd: z.number().optional().describe('US dollars for the platform'),
    total_tokens: z.int().optional().describe('Tokens read and written'),
    inference_cost_breakdown_usd: InferenceCostBreakdown.optional(),
    model_token_usage: z
      .array(ModelTokenUsage)
      .optional()
      .describe('Models that answered, most tokens first. In an outage they may differ from the requested model'),
    usage_by_category: z
      .record(z.string(), CategoryUsage)
      .optional()
      .describe('Usage by the purpose of the requests: `primary_agent`. Absent if the cost of any request is unknown'),
  })
  .meta({ id: 'RequestUsage', description: 'The usage and the cost of a run. 1 credit = 1 US cent' });
export type RequestUsage = z.infer<typeof RequestUsage>;
