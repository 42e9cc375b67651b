import { APICallError, InvalidResponseDataError, TypeValidationError } from 'ai';
import { expect, test } from 'vitest';
import { modelFailure } from './model-failure.ts';

const answered = (statusCode: number, message: string, body: unknown) =>
  new APICallError({
    message,
    url: 'http://model',
    requestBodyValues: {},
    statusCode,
    responseBody: typeof body === 'string' ? body : JSON.stringify(body),
  });

test.each([
  [
    'Mistral',
    {
      object: 'error',
      message: { detail: [{ loc: ['body', 'stream_options'], msg: 'Extra inputs are not permitted' }] },
    },
    'body.stream_options: Extra inputs are not permitted',
  ],
  ['FastAPI', { detail: [{ loc: ['body', 'n'], msg: 'too big' }, { msg: 'and more' }] }, 'body.n: too big; and more'],
  ['llama.cpp', { error: { code: 400, message: 'context is full' } }, 'context is full'],
  ['plain text', 'model not loaded', 'model not loaded'],
  ['unknown JSON', { a: 1 }, '{"a":1}'],
  ['nothing', '', 'Unprocessable Entity'],
])('the reason of a refusal is the text of the provider (%s)', (_, body, reason) => {
  const failure = modelFailure(answered(422, 'Unprocessable Entity', body));
  expect(failure).toMatchObject({ retryable: false, reason, code: 'invalid_request' });
  expect(failure.advice).toContain('administrator');
});

test('an error message that the SDK could parse stays unchanged', () => {
  expect(modelFailure(answered(400, 'too long', { error: { message: 'other' } })).reason).toBe('too long');
});

test('neither the request nor the run is repeated after a fault of the service', () => {
  const error = new APICallError({
    message: 'the gateway could not send the request',
    url: 'http://model',
    requestBodyValues: {},
    statusCode: 500,
    responseHeaders: { 'x-runyard-error-code': 'internal_error' },
  });
  expect(modelFailure(error)).toMatchObject({ retryable: false, retried: true, code: 'internal_error' });
});

test('a request whose stream ends early is repeated', () => {
  const error = new InvalidResponseDataError({ data: null, message: 'Response stream ended without a finish reason.' });
  expect(modelFailure(error)).toMatchObject({ retryable: true });
});

test('a request is not repeated after an answer that does not have the format of the API', () => {
  const cause = new Error('choices: expected array');
  expect(modelFailure(new TypeValidationError({ value: { choices: null }, cause }))).toMatchObject({
    retryable: false,
    code: 'invalid_request',
    advice: expect.stringContaining('format of the answer'),
  });
});
