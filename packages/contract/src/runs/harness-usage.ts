import { z } from 'zod';
import { Timestamp, Uuid } from '../wire/primitives.ts';

const CoverageStatus = z
  .enum(['known', 'partial', 'unavailable'])
  .meta({ id: 'HarnessUsageCoverageStatus', description: 'Whether counters are complete' });

const coverage = z
  .object({
    tokenStatus: CoverageStatus.describe('`partial`: a request to a model is in progress'),
    toolStatus: CoverageStatus.describe('Calls of tools are not counted: `unavailable`'),
  })
  .meta({ id: 'HarnessUsageCoverage', description: 'How complete the counters are' });

const ClaudeTokens = z
  .object({
    input_tokens: z.int().describe('Tokens that were neither read from nor written to a cache'),
    output_tokens: z.int().describe('Tokens of the answers'),
    cache_read_input_tokens: z.int().describe('Read from a cache'),
    cache_creation_input_tokens: z.int().describe('Written to a cache'),
  })
  .meta({ id: 'ClaudeTokens', description: 'Tokens in the counters of Anthropic' });

const CodexTokens = z
  .object({
    input_tokens: z.int().describe('Tokens of the requests, cached tokens included'),
    cached_input_tokens: z.int().describe('Part of input_tokens that was read from a cache'),
    cache_write_input_tokens: z.int().describe('Part of input_tokens that was written to a cache'),
    output_tokens: z.int().describe('Tokens of the answers, reasoning tokens included'),
    total_tokens: z.int().describe('Sum of input_tokens and output_tokens'),
  })
  .meta({ id: 'CodexTokens', description: 'Tokens in the counters of OpenAI' });

const envelope = <H extends string, T extends z.ZodType>(harness: H, tokens: T, name: string) =>
  z
    .object({
      harness: z.literal(harness).describe('Program that worked on the prompt'),
      metricsVersion: z.literal(1).describe('Version of this form'),
      executionId: z.int().describe('Number of the execution that sent the last request, from 1'),
      captureSequence: z.int().describe('Number of requests that are counted'),
      capturedAt: Timestamp.describe('When the last of them ended, RFC 3339 in UTC'),
      snapshot: z
        .object({
          coverage,
          payload: z
            .object({
              usage: tokens.describe('All requests together'),
              attribution: z
                .array(
                  z
                    .object({ model: z.string().describe('Model that answered'), usage: tokens })
                    .meta({ id: `${name}OfModel`, description: 'Tokens of one model' }),
                )
                .describe('The same for each model'),
            })
            .meta({ id: `${name}Counters`, description: 'The counters' }),
        })
        .meta({ id: `${name}Snapshot`, description: 'The counters, and how complete they are' }),
    })
    .meta({ id: name, description: `Usage of a run with the harness ${harness}` });

/** `GET /agent/runs/{runId}/harness-usage`. The members of the answer have the same names as in the public service. */
export const HarnessUsage = z
  .object({
    available: z.boolean().describe('False: the harness has no such counters, or no request to a model has ended'),
    run_id: Uuid.describe('Id of the run'),
    conversation_id: Uuid.describe('Id of its conversation'),
    age_seconds: z.int().optional().describe('Seconds since the last counted request'),
    usage: z
      .discriminatedUnion('harness', [
        envelope('CLAUDE_CODE', ClaudeTokens, 'ClaudeUsage'),
        envelope('CODEX', CodexTokens, 'CodexUsage'),
      ])
      .optional()
      .describe('Present if available'),
  })
  .meta({ id: 'HarnessUsage', description: "Tokens of a run in the counters of its harness's provider" });
export type HarnessUsage = z.infer<typeof HarnessUsage>;
