import type { ProviderTool } from '@runyard/contract/environments/provider-tool-names';
import { needs, objectOf, plainName, type RequestRules, type Verdict } from './rules.ts';

/** Members of a tool, in lower case without `_`. The harness itself executes the tools of the first two members. */
const tools: Readonly<Record<string, Verdict>> = {
  functiondeclarations: 'passes',
  computeruse: 'passes',
  googlesearch: needs('web_search'),
  googlesearchretrieval: needs('web_search'),
  enterprisewebsearch: needs('web_search'),
  exaaisearch: needs('web_search'),
  parallelaisearch: needs('web_search'),
  urlcontext: needs('web_fetch'),
  codeexecution: needs('code_execution'),
  filesearch: needs('file_search'),
  retrieval: needs('file_search'),
  googlemaps: needs('maps'),
  mcpservers: needs('mcp'),
};

/** Both spellings of a name: Google accepts `systemInstruction` and `system_instruction`. */
const both = (...names: readonly string[]): string[] =>
  names.flatMap((name) => [name, name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)]);

/** The rules of Google's generateContent and countTokens. The members are those that @google/genai 3.3.0 sends to the Gemini API. */
export const googleRules: RequestRules = {
  members: new Set([
    ...both('model', 'contents', 'systemInstruction', 'tools', 'toolConfig', 'safetySettings', 'generationConfig'),
    ...both('serviceTier', 'labels', 'speed'),
  ]),
  reference: (name) => {
    switch (plainName(name)) {
      case 'cachedcontent':
      case 'continuationtoken':
      case 'store':
        return needs('stored_content');
      case 'generatecontentrequest':
        return { never: 'generateContentRequest; give its members directly' };
      case 'fallbacks':
      case 'background':
        return { never: name };
      default:
        return 'unknown';
    }
  },
  content: new Set(both('contents', 'systemInstruction')),
  tool: (tool) => {
    const members = Object.entries(objectOf(tool) ?? {}).filter(([, value]) => value !== null);
    const verdicts = members.map(([name]): Verdict => {
      const plain = plainName(name);
      return Object.hasOwn(tools, plain) ? (tools[plain] ?? 'unknown') : 'unknown';
    });
    return (
      verdicts.find((verdict) => typeof verdict === 'object') ?? (verdicts.includes('unknown') ? 'unknown' : 'passes')
    );
  },
  inContent: (name, value): ProviderTool | undefined => {
    if (name === 'fileuri' && typeof value === 'string')
      return /^https:\/\/generativelanguage\.googleapis\.com\//i.test(value) ? 'stored_content' : 'url_content';
    return undefined;
  },
  free: new Set(['args', 'response', 'executablecode', 'codeexecutionresult', 'parametersjsonschema', 'partmetadata']),
};
