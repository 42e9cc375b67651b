import { isAddress, isEmpty, needs, objectOf, type RequestRules, type Verdict } from './rules.ts';

/** Tools that the harness itself executes, and tools with which the model only searches the tools of the request. */
const ownTools = new Set([
  ...['function', 'custom', 'local_shell', 'apply_patch', 'computer', 'computer_use', 'computer_use_preview'],
  ...['tool_search', 'namespace'],
]);

const hosted: readonly (readonly [RegExp, Verdict])[] = [
  [/^web_search/, needs('web_search')],
  [/^file_search/, needs('file_search')],
  [/^code_interpreter|^programmatic_tool_calling|^shell/, needs('code_execution')],
  [/^image_generation/, needs('image_generation')],
  [/^mcp/, needs('mcp')],
];

/** The rules of OpenAI Responses. The members are those of ResponseCreateParams in openai 7.57.0, and `client_metadata` of Codex. */
export const openAiResponsesRules: RequestRules = {
  members: new Set([
    ...['model', 'input', 'instructions', 'tools', 'tool_choice', 'parallel_tool_calls', 'max_tool_calls', 'stream'],
    ...['stream_options', 'max_output_tokens', 'temperature', 'top_p', 'top_logprobs', 'reasoning', 'text', 'include'],
    ...['truncation', 'context_management', 'metadata', 'client_metadata', 'user', 'safety_identifier'],
    ...['prompt_cache_key', 'prompt_cache_options', 'prompt_cache_retention', 'service_tier', 'image', 'n'],
  ]),
  reference: (name) => {
    switch (name) {
      case 'previous_response_id':
      case 'conversation':
      case 'prompt':
      case 'store':
        return needs('stored_content');
      case 'background':
      case 'fallbacks':
      case 'models':
        return { never: name };
      case 'plugins':
        return needs('web_search');
      default:
        return 'unknown';
    }
  },
  content: new Set(['input', 'instructions']),
  tool: (tool) => {
    const { type, environment, container } = objectOf(tool) ?? {};
    if (typeof type !== 'string') return type === undefined || type === null ? 'passes' : 'unknown';
    if (type === 'shell' && objectOf(environment)?.type === 'local') return 'passes';
    if (ownTools.has(type)) return 'passes';
    const size = objectOf(container ?? environment)?.memory_limit;
    if (typeof size === 'string' && size !== '1g') return { never: `a container with ${size.slice(0, 20)} of memory` };
    return hosted.find(([form]) => form.test(type))?.[1] ?? 'unknown';
  },
  inContent: (name, value, within) => {
    if (name === 'fileid' && typeof value === 'string') return 'stored_content';
    if (name === 'containerid' && typeof value === 'string') return 'code_execution';
    if (name === 'type' && value === 'item_reference') return 'stored_content';
    // An item with an id and without type and role is also a reference to a stored item.
    if (name === 'id' && isEmpty(within.type) && isEmpty(within.role)) return 'stored_content';
    if (name === 'environment' && !isEmpty(value) && objectOf(value)?.type !== 'local') return 'code_execution';
    return name.endsWith('url') && isAddress(value) ? 'url_content' : undefined;
  },
  free: new Set([
    ...['arguments', 'annotations', 'parameters', 'schema', 'action', 'actions', 'results', 'inputschema'],
    ...['pendingsafetychecks', 'acknowledgedsafetychecks'],
  ]),
};
