/** Counts the calls of a provider's own tools in an answer, per protocol. All functions accept any input. */
import type { ProviderTool } from '@runyard/contract/environments/provider-tool-names';
import type { ToolCalls } from '../../../../team/models/price.ts';
import { count, member, type Protocol } from './counts.ts';

type Counts = Partial<Record<ProviderTool, number>>;

const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

const ofAnthropic: Readonly<Record<string, ProviderTool>> = {
  web_search: 'web_search',
  web_fetch: 'web_fetch',
  code_execution: 'code_execution',
  bash_code_execution: 'code_execution',
  text_editor_code_execution: 'code_execution',
};

/** Reads the tools that an answer of Anthropic calls, and the number of searches that its `usage` reports. */
function anthropicCalls(value: unknown): { readonly called: readonly ProviderTool[]; readonly searches: number } {
  const message = member(value, 'message') ?? value;
  const blocks = [member(value, 'content_block'), ...list(member(message, 'content'))];
  const called = blocks.flatMap((block) => {
    const name = member(block, 'type') === 'server_tool_use' ? String(member(block, 'name')) : '';
    return Object.hasOwn(ofAnthropic, name) ? [ofAnthropic[name] as ProviderTool] : [];
  });
  const reported = member(member(message, 'usage') ?? member(value, 'usage'), 'server_tool_use');
  return { called, searches: count(member(reported, 'web_search_requests')) ?? 0 };
}

const ofResponses: Readonly<Record<string, ProviderTool>> = {
  web_search_call: 'web_search',
  file_search_call: 'file_search',
  code_interpreter_call: 'code_execution',
  shell_call: 'code_execution',
  program: 'code_execution',
  image_generation_call: 'image_generation',
  mcp_call: 'mcp',
};

/** Returns whether a call only reads a page that an earlier search found: the provider does not bill this as a search. */
const isFree = (item: unknown): boolean => {
  const action = member(member(item, 'action'), 'type');
  return action === 'open_page' || action === 'find_in_page' || action === 'find';
};

function responsesCalls(items: readonly unknown[]): readonly ProviderTool[] {
  return items.flatMap((item) => {
    const type = String(member(item, 'type'));
    return Object.hasOwn(ofResponses, type) && !isFree(item) ? [ofResponses[type] as ProviderTool] : [];
  });
}

function googleCalls(value: unknown): Counts {
  const chunks = Array.isArray(value) ? value : [value];
  const grounding = chunks
    .flatMap((chunk) => list(member(chunk, 'candidates')))
    .map((candidate) => member(candidate, 'groundingMetadata'));
  const searches = Math.max(0, ...grounding.map((each) => list(member(each, 'webSearchQueries')).length));
  const isMapped = grounding.some((each) =>
    list(member(each, 'groundingChunks')).some((chunk) => member(chunk, 'maps')),
  );
  return { web_search: searches, maps: isMapped ? 1 : 0 };
}

function add(counts: Counts, called: readonly ProviderTool[]): void {
  for (const tool of called) counts[tool] = (counts[tool] ?? 0) + 1;
}

/** Sets the count of each tool to the reported number, if that number is larger. */
function raise(counts: Counts, reported: Counts): void {
  for (const [tool, number] of Object.entries(reported) as [ProviderTool, number][])
    if (number > (counts[tool] ?? 0)) counts[tool] = number;
}

export interface ToolCounter {
  /** Reads one event of a streamed answer, or the body of an answer in one piece. */
  read(value: unknown): void;
  calls(): ToolCalls;
}

/** Opens a counter for an answer to a request that may use `tools`. */
export function countTools(protocol: Protocol, tools: ReadonlySet<ProviderTool>): ToolCounter {
  const counts: Counts = {};
  let hasAnswer = false;
  return {
    read: (value) => {
      hasAnswer = true;
      switch (protocol) {
        case 'anthropic': {
          const { called, searches } = anthropicCalls(value);
          add(counts, called);
          raise(counts, { web_search: searches });
          break;
        }
        case 'openai-responses': {
          if (member(value, 'type') === 'response.output_item.done')
            add(counts, responsesCalls([member(value, 'item')]));
          const whole: Counts = {};
          add(whole, responsesCalls(list(member(member(value, 'response') ?? value, 'output'))));
          raise(counts, whole);
          break;
        }
        case 'google':
          raise(counts, googleCalls(value));
          break;
        case 'openai-chat':
          break;
      }
    },
    // A chat completion with a web search searches exactly once, and does not report the search.
    calls: () => (protocol === 'openai-chat' && hasAnswer && tools.has('web_search') ? { web_search: 1 } : counts),
  };
}
