import { needs, objectOf, type RequestRules, type Verdict } from './rules.ts';

/** Tools that the harness itself executes, and tools with which the model only searches the tools of the request. */
const ownTools =
  /^(?:custom|(?:bash|text_editor|memory|computer|computer_toolset|browser_toolset|tool_search_tool_(?:bm25|regex))(?:_\d+)?)$/;

const hosted: readonly (readonly [RegExp, Verdict])[] = [
  [/^web_search/, needs('web_search')],
  [/^web_fetch/, needs('web_fetch')],
  [/^code_execution/, needs('code_execution')],
  [/^mcp_toolset/, needs('mcp')],
  [/^advisor/, { never: 'a tool that sends further requests to a model' }],
];

/** The rules of Anthropic Messages and of its counting of tokens. The members are those of MessageCreateParams in @anthropic-ai/sdk 1.14.0,
 * beta included. */
export const anthropicRules: RequestRules = {
  members: new Set([
    ...['model', 'max_tokens', 'messages', 'system', 'tools', 'tool_choice', 'stream', 'stop_sequences', 'metadata'],
    ...['temperature', 'top_p', 'top_k', 'thinking', 'output_config', 'output_format', 'cache_control'],
    ...['context_management', 'compaction', 'service_tier', 'speed'],
  ]),
  reference: (name, value) => {
    switch (name) {
      case 'mcp_servers':
        return needs('mcp');
      case 'container':
        return needs('code_execution');
      case 'thread':
        return needs('stored_content');
      // Some regions cost more than the standard rate.
      case 'inference_geo':
        return value === 'global' ? 'passes' : { never: 'inference_geo' };
      case 'fallbacks':
      case 'fallback_credit_token':
        return { never: name };
      default:
        return 'unknown';
    }
  },
  content: new Set(['messages', 'system']),
  tool: (tool) => {
    const { type } = objectOf(tool) ?? {};
    if (type === undefined || type === null) return 'passes';
    if (typeof type !== 'string') return 'unknown';
    return ownTools.test(type) ? 'passes' : (hosted.find(([form]) => form.test(type))?.[1] ?? 'unknown');
  },
  inContent: (name, value) => {
    if (name === 'fileid' && typeof value === 'string') return 'stored_content';
    if (name === 'type' && value === 'mcp_toolset_reference') return 'mcp';
    if (name !== 'source' || objectOf(value) === undefined) return undefined;
    const { type } = objectOf(value) ?? {};
    if (type === 'file') return 'stored_content';
    // The `source` of a search result is a text, not an object. A `source` of an unknown kind may be an address.
    return type === 'base64' || type === 'text' || type === 'content' ? undefined : 'url_content';
  },
  free: new Set(['input', 'inputschema', 'inputexamples', 'citations']),
};
