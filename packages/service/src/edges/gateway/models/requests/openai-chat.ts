import { isAddress, needs, objectOf, plainName, type RequestRules } from './rules.ts';

/** Members of ChatCompletionCreateParams in openai 7.57.0. */
const ofOpenAi = [
  ...['model', 'messages', 'tools', 'tool_choice', 'parallel_tool_calls', 'functions', 'function_call', 'stream'],
  ...['stream_options', 'stop', 'seed', 'n', 'max_tokens', 'max_completion_tokens', 'temperature', 'top_p'],
  ...['presence_penalty', 'frequency_penalty', 'logit_bias', 'logprobs', 'top_logprobs', 'response_format'],
  ...['reasoning_effort', 'verbosity', 'prediction', 'modalities', 'audio', 'metadata', 'user', 'safety_identifier'],
  ...['prompt_cache_key', 'prompt_cache_options', 'prompt_cache_retention', 'service_tier'],
];

/**
 * Members that only compatible servers have (vLLM, llama.cpp, Ollama, SGLang, Mistral, DeepSeek, Qwen, GLM, OpenRouter). They only change
 * how the server produces its answer.
 */
const ofCompatible = [
  ...[
    'top_k',
    'min_p',
    'top_a',
    'typical_p',
    'repetition_penalty',
    'repeat_penalty',
    'repeat_last_n',
    'length_penalty',
  ],
  ...['min_tokens', 'ignore_eos', 'stop_token_ids', 'skip_special_tokens', 'random_seed', 'safe_prompt', 'prompt_mode'],
  ...['chat_template_kwargs', 'add_generation_prompt', 'continue_final_message', 'include_reasoning', 'reasoning'],
  ...['reasoning_format', 'separate_reasoning', 'thinking', 'thinking_budget', 'enable_thinking', 'preserve_thinking'],
  ...['guided_json', 'guided_regex', 'guided_choice', 'guided_grammar', 'structured_outputs', 'grammar', 'json_schema'],
  ...[
    'keep_alive',
    'options',
    'num_ctx',
    'cache_prompt',
    'mirostat',
    'mirostat_eta',
    'mirostat_tau',
    'xtc_probability',
  ],
  ...['xtc_threshold', 'dry_multiplier', 'dry_base', 'dry_allowed_length', 'speed', 'tool_stream', 'cache_control'],
  ...['best_of', 'vl_high_resolution_images'],
];

/** Members of OpenAI, xAI, Qwen and OpenRouter that make a server search the web. */
const searches = new Set(['web_search_options', 'search_parameters', 'enable_search', 'search_options', 'plugins']);

/** The rules of OpenAI chat completions, at OpenAI and at compatible endpoints. */
export const openAiChatRules: RequestRules = {
  members: new Set([...ofOpenAi, ...ofCompatible]),
  reference: (name) => {
    if (searches.has(name)) return needs('web_search');
    if (name === 'mcp_servers') return needs('mcp');
    if (name === 'store') return needs('stored_content');
    return ['fallbacks', 'models', 'background'].includes(name) ? { never: name } : 'unknown';
  },
  content: new Set(['messages']),
  tool: (tool) => {
    const { type } = objectOf(tool) ?? {};
    if (type === undefined || type === 'function' || type === 'custom') return 'passes';
    if (typeof type !== 'string') return 'unknown';
    if (/search|browse/.test(type) || type === 'builtin_function') return needs('web_search');
    if (/retriever|fetch|url/.test(type)) return needs('web_fetch');
    if (/code/.test(type)) return needs('code_execution');
    return type === 'mcp' ? needs('mcp') : 'unknown';
  },
  inContent: (name, value) => {
    if (name === 'fileid' && typeof value === 'string') return 'stored_content';
    // `audio.id` refers to the sound of an earlier answer, which the provider has stored.
    if (name === 'audio' && typeof objectOf(value)?.id === 'string') return 'stored_content';
    if (!name.endsWith('url') && name !== 'filedata') return undefined;
    const inner = objectOf(value);
    const addresses = inner
      ? Object.entries(inner).flatMap(([key, each]) => (plainName(key) === 'url' ? [each] : []))
      : [value];
    return addresses.some(isAddress) && (name !== 'filedata' || /^\s*https?:/i.test(String(value)))
      ? 'url_content'
      : undefined;
  },
  free: new Set(['arguments', 'annotations', 'parameters', 'schema', 'reasoningdetails']),
};
