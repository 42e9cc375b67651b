import { describe, expect, it } from 'vitest';
import type { ModelTarget } from '../../../team/models/models.ts';
import { checkRequest } from './check-request.ts';
import { endpointOf } from './endpoints.ts';

const paths = {
  anthropic: ['anthropic', '/api/v1/gateway/anthropic/v1/messages'],
  count: ['anthropic', '/api/v1/gateway/anthropic/v1/messages/count_tokens'],
  chat: ['local', '/api/v1/gateway/local/v1/chat/completions'],
  responses: ['openai', '/api/v1/gateway/openai/v1/responses'],
  google: ['google', '/api/v1/gateway/google/v1beta/models/m:generateContent'],
} as const;
type Path = keyof typeof paths;

const upstream = { baseUrl: 'https://provider.test/v1' };

const check = (path: Path, body: object | string, providerTools: Parameters<typeof checkRequest>[3] = {}) => {
  const [provider, url] = paths[path];
  const endpoint = endpointOf(provider, 'POST', url);
  if (endpoint === undefined || endpoint.kind === 'models') throw new Error('no endpoint');
  const target: ModelTarget = { id: `${provider}/m`, provider, providerModel: 'm', upstream, price: undefined };
  const text = typeof body === 'string' ? body : JSON.stringify(path === 'google' ? body : { model: 'm', ...body });
  return checkRequest(endpoint, target, Buffer.from(text), providerTools);
};

const sent = async (path: Path, body: object | string, rights: Parameters<typeof checkRequest>[3] = {}) => {
  const checked = await check(path, body, rights);
  if (!checked.ok) throw new Error(checked.message);
  return { ...checked, body: JSON.parse(Buffer.concat(checked.body).toString('utf8')) as Record<string, unknown> };
};

const image = (source: object) => ({ messages: [{ role: 'user', content: [{ type: 'image', source }] }] });
const part = (more: object) => ({ messages: [{ role: 'user', content: [more] }] });
const item = (...input: object[]) => ({ input });
const user = (...content: object[]) => item({ type: 'message', role: 'user', content });
const contents = (...parts: object[]) => ({ contents: [{ role: 'user', parts }] });
const url = 'https://attacker.example/x.png';
const inResult = {
  role: 'user',
  content: [{ type: 'tool_result', content: [{ type: 'document', source: { type: 'url', url } }] }],
};

describe('a request for an action outside of the sandbox is refused unless the environment allows', () => {
  it.each<[string, Path, object]>([
    ['mcp', 'anthropic', { mcp_servers: [{ type: 'url', url, name: 'x' }] }],
    ['mcp', 'anthropic', { tools: [{ type: 'mcp_toolset', mcp_server_name: 'x' }] }],
    ['web_search', 'anthropic', { tools: [{ type: 'web_search_20260318', name: 'web_search' }] }],
    ['web_fetch', 'anthropic', { tools: [{ type: 'web_fetch_20260318', name: 'web_fetch' }] }],
    ['code_execution', 'anthropic', { tools: [{ type: 'code_execution_20260521', name: 'code_execution' }] }],
    ['code_execution', 'anthropic', { container: 'container_1' }],
    ['stored_content', 'anthropic', { thread: { id: 'thread_1' } }],
    ['url_content', 'anthropic', image({ type: 'url', url })],
    ['stored_content', 'anthropic', image({ type: 'file', file_id: 'file_1' })],
    ['stored_content', 'anthropic', part({ type: 'container_upload', file_id: 'file_1' })],
    ['url_content', 'anthropic', { messages: [inResult] }],
    ['url_content', 'anthropic', { system: [{ type: 'document', source: { type: 'another', uri: url } }] }],
    ['web_search', 'anthropic', part({ type: 'tool_addition', tool: { type: 'web_search_20260318', name: 'w' } })],
    ['url_content', 'count', image({ type: 'url', url })],
    ['web_search', 'chat', { web_search_options: {} }],
    ['web_search', 'chat', { search_parameters: { mode: 'on' } }],
    ['web_search', 'chat', { enable_search: true }],
    ['web_search', 'chat', { plugins: [{ id: 'web' }] }],
    ['web_search', 'chat', { tools: [{ type: 'builtin_function', function: { name: '$web_search' } }] }],
    ['stored_content', 'chat', { store: true }],
    ['url_content', 'chat', part({ type: 'image_url', image_url: { url } })],
    ['url_content', 'chat', part({ type: 'image_url', Image_URL: url })],
    ['url_content', 'chat', part({ type: 'video_url', video_url: { url: 'file:///etc/passwd' } })],
    ['stored_content', 'chat', part({ type: 'file', file: { file_id: 'file-1' } })],
    ['stored_content', 'chat', { messages: [{ role: 'assistant', audio: { id: 'audio_1' } }] }],
    ['web_search', 'responses', { tools: [{ type: 'web_search' }] }],
    ['web_search', 'responses', { tools: [{ type: 'web_search_preview_2025_03_11' }] }],
    ['file_search', 'responses', { tools: [{ type: 'file_search', vector_store_ids: ['vs_1'] }] }],
    ['code_execution', 'responses', { tools: [{ type: 'code_interpreter', container: { type: 'auto' } }] }],
    ['code_execution', 'responses', { tools: [{ type: 'shell', environment: { type: 'container_auto' } }] }],
    ['code_execution', 'responses', { tools: [{ type: 'programmatic_tool_calling' }] }],
    ['image_generation', 'responses', { tools: [{ type: 'image_generation' }] }],
    ['mcp', 'responses', { tools: [{ type: 'mcp', server_url: url, server_label: 'x' }] }],
    ['web_search', 'responses', { tools: [{ type: 'namespace', name: 'n', tools: [{ type: 'web_search' }] }] }],
    [
      'mcp',
      'responses',
      item({ type: 'additional_tools', role: 'developer', tools: [{ type: 'mcp', server_url: url }] }),
    ],
    ['stored_content', 'responses', { previous_response_id: 'resp_1' }],
    ['stored_content', 'responses', { conversation: 'conv_1' }],
    ['stored_content', 'responses', { prompt: { id: 'pmpt_1' } }],
    ['stored_content', 'responses', { store: true }],
    ['stored_content', 'responses', item({ type: 'item_reference', id: 'msg_1' })],
    ['stored_content', 'responses', item({ id: 'msg_1' })],
    ['stored_content', 'responses', user({ type: 'input_image', file_id: 'file-1' })],
    ['url_content', 'responses', user({ type: 'input_image', image_url: url })],
    ['url_content', 'responses', user({ type: 'input_file', file_url: url })],
    [
      'url_content',
      'responses',
      item({ type: 'function_call_output', call_id: 'c', output: [{ type: 'input_image', image_url: url }] }),
    ],
    ['code_execution', 'responses', item({ type: 'code_interpreter_call', id: 'c', container_id: 'cntr_1', code: '' })],
    ['web_search', 'google', { tools: [{ googleSearch: {} }] }],
    ['web_search', 'google', { tools: [{ google_search_retrieval: {} }] }],
    ['web_fetch', 'google', { tools: [{ functionDeclarations: [] }, { url_context: {} }] }],
    ['code_execution', 'google', { tools: [{ codeExecution: {} }] }],
    ['maps', 'google', { tools: { googleMaps: {} } }],
    ['file_search', 'google', { tools: [{ fileSearch: { fileSearchStoreNames: ['a'] } }] }],
    ['mcp', 'google', { tools: [{ mcpServers: [{ name: 'x' }] }] }],
    ['url_content', 'google', contents({ fileData: { fileUri: 'https://www.youtube.com/watch?v=x' } })],
    ['url_content', 'google', contents({ file_data: { file_uri: url } })],
    [
      'stored_content',
      'google',
      contents({ fileData: { fileUri: 'https://generativelanguage.googleapis.com/v1beta/files/x' } }),
    ],
    ['stored_content', 'google', { cached_content: 'cachedContents/x' }],
    [
      'url_content',
      'google',
      contents({ functionResponse: { name: 'f', response: {}, parts: [{ fileData: { fileUri: url } }] } }),
    ],
  ])('%s (%s %j)', async (tool, path, body) => {
    const refused = await check(path, body);
    expect(refused).toMatchObject({
      ok: false,
      status: 403,
      message: expect.stringContaining(`add ${tool} to provider_tools`),
    });
    const passed = await check(path, body, { providerTools: [tool as 'mcp'] });
    expect(passed).toMatchObject({ ok: true, removed: [] });
    expect(passed.ok && [...passed.tools]).toEqual([tool]);
  });
});

describe('a request passes unchanged with', () => {
  const schema = { type: 'object', properties: { url: { type: 'string' }, file_id: { type: 'string' } } };
  it.each<[string, Path, object]>([
    [
      'tools of the harness',
      'anthropic',
      {
        tools: [
          { name: 't', input_schema: schema },
          { type: 'bash_20250124', name: 'bash' },
          { type: 'computer_toolset_20260801' },
          { type: 'tool_search_tool_bm25', name: 's' },
        ],
      },
    ],
    ['an image of its own', 'anthropic', image({ type: 'base64', media_type: 'image/png', data: 'AAAA' })],
    [
      'addresses in the input of a tool',
      'anthropic',
      part({
        type: 'tool_use',
        id: 'i',
        name: 'n',
        input: { source: { type: 'url', url }, file_id: 'f', tools: [{ type: 'mcp' }] },
      }),
    ],
    ['a search result of its own', 'anthropic', part({ type: 'search_result', source: url, title: 't', content: [] })],
    [
      'members of the harness',
      'anthropic',
      {
        thinking: { type: 'adaptive' },
        output_config: { effort: 'high' },
        context_management: { edits: [] },
        metadata: { user_id: 'u' },
      },
    ],
    ['an image in the text', 'chat', part({ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } })],
    [
      'members of a compatible server',
      'chat',
      { top_k: 3, chat_template_kwargs: { enable_thinking: false }, reasoning_effort: 'low' },
    ],
    [
      'calls with addresses',
      'chat',
      { messages: [{ role: 'assistant', tool_calls: [{ function: { name: 'f', arguments: { image_url: url } } }] }] },
    ],
    [
      'tools of the harness',
      'responses',
      {
        store: false,
        tools: [
          { type: 'function', name: 'f', parameters: schema },
          { type: 'custom', name: 'c' },
          { type: 'local_shell' },
          { type: 'shell', environment: { type: 'local' } },
        ],
      },
    ],
    [
      'reasoning that is not stored',
      'responses',
      {
        store: false,
        ...item(
          { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'x' },
          { role: 'user', content: 'look' },
        ),
      },
    ],
    [
      'an image in the text',
      'responses',
      { store: false, ...user({ type: 'input_image', image_url: 'data:image/png;base64,AAAA' }) },
    ],
    [
      'both spellings',
      'google',
      {
        system_instruction: { parts: [] },
        generationConfig: { temperature: 1 },
        ...contents({ inlineData: { data: 'AAAA' } }),
      },
    ],
    ['calls with addresses', 'google', contents({ functionCall: { name: 'f', args: { fileData: { fileUri: url } } } })],
  ])('%s (%s)', async (_, path, body) => {
    const { body: written, removed, tools } = await sent(path, body);
    expect({ removed, tools: [...tools] }).toEqual({ removed: [], tools: [] });
    expect(written).toEqual(path === 'google' ? body : { model: 'm', ...body });
  });
});

describe('the body for the provider', () => {
  it.each<[Path, object, string[]]>([
    [
      'anthropic',
      { brand_new: { url }, betas: ['x'], workspace_id: 'w', tools: [{ type: 'teleport_2027' }, { name: 't' }] },
      ['brand_new', 'betas', 'workspace_id', 'tools.teleport_2027'],
    ],
    ['chat', { provider: { order: ['x'] }, Mcp_Servers: [{ url }] }, ['provider', 'Mcp_Servers']],
    ['responses', { mcp_servers: [{ url }], tools: [{ type: 'teleport' }] }, ['mcp_servers', 'tools.teleport']],
    ['google', { mcp_servers: [{ url }], tools: [{ teleport: {} }] }, ['mcp_servers', 'tools.tool']],
  ])('has no members that the gateway does not know (%s)', async (path, body, names) => {
    const { body: written, removed } = await sent(path, { messages: undefined, ...body });
    expect(removed).toEqual(names);
    expect(JSON.stringify(written)).not.toMatch(/attacker|teleport|order|brand_new/);
  });

  it('omits empty members of provider tools, and the environment need not allow these tools', async () => {
    const { body, removed } = await sent('anthropic', { mcp_servers: [], container: null });
    expect({ body, removed }).toEqual({ body: { model: 'm' }, removed: [] });
  });
});

it.each<[string, Path, object]>([
  ['priority', 'anthropic', { service_tier: 'priority' }],
  ['fast mode', 'anthropic', { speed: 'fast' }],
  ['a dearer region', 'anthropic', { inference_geo: 'us' }],
  ['fallback models', 'anthropic', { fallbacks: [{ model: 'dearer' }] }],
  [
    'a tool that asks another model',
    'anthropic',
    { tools: [{ type: 'advisor_20260301', name: 'a', model: 'dearer' }] },
  ],
  ['a tool that asks this model', 'anthropic', { tools: [{ type: 'advisor_20260301', name: 'a', model: 'm' }] }],
  ['fallback models', 'chat', { models: ['dearer'] }],
  ['answers in the background', 'responses', { background: true }],
  [
    'a large container',
    'responses',
    { tools: [{ type: 'code_interpreter', container: { type: 'auto', memory_limit: '64g' } }] },
  ],
  ['priority', 'google', { serviceTier: 'priority' }],
  ['another model', 'google', { generation_config: { modelSelectionConfig: {} } }],
  ['a request inside', 'google', { generateContentRequest: { model: 'models/dearer' } }],
])('%s is refused in every environment (%s)', async (_, path, body) => {
  const rights = { providerTools: ['code_execution', 'image_generation'] } as const;
  expect(await check(path, body, rights)).toMatchObject({ ok: false, status: 403 });
});

it('an object with two members of the same name is refused, because the provider could use the unchecked member', async () => {
  const body = '{"model":"m","messages":[{"role":"user","content":[{"type":"text","t\\u0079pe":"image"}]}]}';
  expect(await check('anthropic', body)).toMatchObject({ ok: false, status: 400 });
});

it('answers of OpenAI are not stored, unless the environment allows it', async () => {
  expect((await sent('responses', { input: 'hi' })).body).toMatchObject({ store: false });
  expect((await sent('responses', { input: 'hi' }, { providerTools: ['stored_content'] })).body).not.toHaveProperty(
    'store',
  );
});

it.each<[Path, object, number | 'refused']>([
  ['chat', {}, 1],
  ['chat', { n: 128 }, 128],
  ['chat', { n: null, best_of: 3 }, 3],
  ['google', { generationConfig: { candidateCount: 8 } }, 8],
  ['google', { generation_config: { candidate_count: 8 } }, 8],
  ['chat', { n: '8' }, 'refused'],
  ['chat', { n: 0 }, 'refused'],
])('the number of answers is read (%s %j)', async (path, body, answers) => {
  const checked = await check(path, body);
  expect(checked.ok ? checked.answers : 'refused').toBe(answers);
});
