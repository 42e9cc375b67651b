import { z } from 'zod';
import { errorCatalogue } from './error-catalogue.ts';

/** Members that some error codes add to a problem document and to the reason for the state of a run. */
export const ErrorDetail = z
  .object({
    provider: z
      .string()
      .optional()
      .describe('External service that refuses access: github, gitlab, or the host of another code host'),
    auth_url: z.string().optional().describe('Page that explains how to give access'),
    inaccessible_repos: z
      .array(z.string())
      .optional()
      .describe('Repositories, as owner/repo, that cannot be reached with the credential at hand'),
  })
  .meta({ id: 'ErrorDetail', description: 'Members that an error adds' });
export type ErrorDetail = z.infer<typeof ErrorDetail>;

/** A code of the error catalogue. */
export type ErrorCode = keyof typeof errorCatalogue;

export const ErrorCode = z
  .enum(Object.keys(errorCatalogue) as [ErrorCode, ...ErrorCode[]])
  .meta({ id: 'ErrorCode', description: 'Machine-readable code of an error' });

/** A wrong member of a request. */
export const InvalidMember = z
  .object({
    path: z
      .string()
      .describe('Path of the member in the request, such as `config.model_id`; for a fault in a definition, the file'),
    message: z.string().describe('The fault, and the expected value'),
    line: z.int().optional().describe('Line in the file that `path` names, from 1'),
    column: z.int().optional().describe('Column in that line, from 1'),
    suggestion: z.string().optional().describe('Name that was probably meant'),
  })
  .meta({ id: 'InvalidMember', description: 'A member of a request that is not as it must be' });

/** Body of every error answer: `application/problem+json` (RFC 7807), with additional members of this API. */
export const Problem = z
  .object({
    type: z.string().meta({ description: '{base_url}/errors/{code-with-dashes}, a page that explains the code' }),
    title: z.string().describe('The error in a few words, the same for each `error_code`'),
    status: z.int().describe('HTTP status of the answer'),
    detail: z.string().optional().describe('The cause of this error and the next step'),
    instance: z.string().meta({ description: 'Path of the request' }),
    error: z.string().meta({ description: "Legacy: 'title (detail)', or the title alone" }),
    error_code: ErrorCode,
    retryable: z.boolean().describe('True: the same request may succeed later'),
    trace_id: z.string().meta({ description: 'W3C trace id of the request' }),
    errors: z.array(InvalidMember).optional().meta({ description: 'On 400 and 422: each wrong member' }),
    provider: z
      .string()
      .optional()
      .describe('With `external_authentication_required`: the service that is not authorized'),
    auth_url: z
      .string()
      .optional()
      .describe('With `external_authentication_required`: the address for the authorization'),
    inaccessible_repos: z
      .array(z.string())
      .optional()
      .describe('With `external_authentication_required`: repositories that cannot be read'),
    integration_name: z.string().optional().describe('With `integration_not_configured`: the integration'),
    setup_url: z.string().optional().describe('With `integration_not_configured`: the address for the setup'),
  })
  .meta({ id: 'Problem', description: 'Body of every error answer: a problem document by RFC 7807' });
export type Problem = z.infer<typeof Problem>;

/** Returns the last part of a problem's `type`: the error code with dashes. */
export function errorSlug(code: ErrorCode): string {
  return code.replaceAll('_', '-');
}
