import type { ProviderName } from '../../../team/models/providers.ts';

const anthropicTypes: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
};

const googleNames: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  413: 'INVALID_ARGUMENT',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
  502: 'UNAVAILABLE',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
};

const openAiCodes: Readonly<Record<number, string>> = {
  401: 'invalid_api_key',
  404: 'not_found',
  429: 'rate_limit_exceeded',
};

/** Returns an error of the gateway in the format of the provider, so that harnesses show its sentence. */
export function providerError(provider: ProviderName, status: number, message: string): unknown {
  switch (provider) {
    case 'anthropic':
      return { type: 'error', error: { type: anthropicTypes[status] ?? 'api_error', message } };
    case 'google':
      return { error: { code: status, message, status: googleNames[status] ?? 'UNKNOWN' } };
    case 'openai':
    case 'local':
      return {
        error: {
          message,
          type: status >= 500 ? 'server_error' : 'invalid_request_error',
          param: null,
          code: openAiCodes[status] ?? null,
        },
      };
  }
}
