/**
 * This thread compiles the output schemas of runs and checks results with them. The service ends the thread when a check takes too long.
 * A schema cannot read other documents, because the compiler has no function that loads them.
 */
import { type MessagePort, parentPort } from 'node:worker_threads';
import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import type { FromSchemaThread, ToSchemaThread } from './schema-thread.ts';

const maxFaults = 20;
const maxMessageLength = 500;

/** Compiles a schema. Formats and unknown keywords are only annotations, as in JSON Schema 2020-12. Throws an error about an invalid schema. */
const compile = (schema: unknown): ValidateFunction =>
  new Ajv2020({ strict: false, validateFormats: false, allErrors: false, logger: false, inlineRefs: false }).compile(
    schema as object,
  );

/** Returns words for an error, with the values that the schema expects. */
function wordsOf({ keyword, message = 'does not fit', params }: ErrorObject): string {
  if (keyword === 'enum') return `${message}: ${JSON.stringify(params.allowedValues)}`;
  if (keyword === 'const') return `${message} ${JSON.stringify(params.allowedValue)}`;
  if (keyword === 'additionalProperties') return `${message}: ${JSON.stringify(params.additionalProperty)}`;
  if (keyword === 'unevaluatedProperties') return `${message}: ${JSON.stringify(params.unevaluatedProperty)}`;
  return message;
}

function answer({ schema, value }: ToSchemaThread): FromSchemaThread {
  let validate: ValidateFunction;
  try {
    validate = compile(JSON.parse(schema));
  } catch (error) {
    return { kind: 'invalid_schema', message: (error as Error).message.slice(0, maxMessageLength) };
  }
  if (value === undefined) return { kind: 'fits' };
  let parsed: unknown;
  try {
    parsed = JSON.parse(value);
  } catch {
    return { kind: 'faults', faults: [{ path: '', message: 'is not JSON' }] };
  }
  if (validate(parsed) === true) return { kind: 'fits' };
  const faults = (validate.errors ?? [])
    .slice(0, maxFaults)
    .map((error) => ({ path: error.instancePath, message: wordsOf(error).slice(0, maxMessageLength) }));
  return { kind: 'faults', faults };
}

function serve(port: MessagePort): void {
  port.on('message', (work: ToSchemaThread) => port.postMessage(answer(work)));
  port.postMessage('ready');
}

if (parentPort) serve(parentPort);
