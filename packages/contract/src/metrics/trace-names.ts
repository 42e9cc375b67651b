/** Names of spans and attributes of traces. The names for models and tools follow the semantic conventions of OpenTelemetry 1.45.0. */

/** The kinds of spans, each with its meaning. `name` is the whole name of such a span, or the beginning of the name. */
export const spanNames = {
  request: {
    name: 'create_run',
    description: 'The request, delivery or schedule that created the run: the root of the trace',
  },
  queue: { name: 'queue', description: 'From the request for work to its assignment to a worker' },
  start: { name: 'start', description: 'From the assignment to the moment at which the harness gets the prompt' },
  turn: { name: 'invoke_agent', description: 'One turn of the agent, from the prompt to its end' },
  model: { name: 'chat', description: 'A request to a model, followed by the id of the model' },
  tool: { name: 'execute_tool', description: 'A call of a tool, followed by its category' },
} as const;

/** The attributes of spans. Keys are the names in our code; values are the exported names. */
export const spanAttributes = {
  runId: 'runyard.run.id',
  source: 'runyard.run.source',
  state: 'runyard.run.state',
  execution: 'runyard.execution.number',
  harness: 'runyard.harness',
  backend: 'runyard.sandbox.backend',
  errorType: 'error.type',
  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  model: 'gen_ai.request.model',
  conversation: 'gen_ai.conversation.id',
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  cacheReadTokens: 'gen_ai.usage.cache_read.input_tokens',
  cacheWriteTokens: 'gen_ai.usage.cache_creation.input_tokens',
  tool: 'gen_ai.tool.name',
} as const;

export type SpanAttribute = keyof typeof spanAttributes;
