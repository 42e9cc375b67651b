/** Judges the parts of a request by the rules of its protocol. */
import { meaningOf, type ProviderTool } from '@runyard/contract/environments/provider-tool-names';
import { isEmpty, objectOf, type ProviderUse, plainName, type RequestRules, type Verdict } from './rules.ts';

/** Collects the provider tools that a request needs. `never`: the reason why the request is refused in every environment. */
export interface Judgement {
  readonly uses: ProviderUse[];
  never?: string;
}

/** Notes a verdict. Returns true if the part may stay in the request. */
function note(judgement: Judgement, verdict: Verdict, place: string): boolean {
  if (typeof verdict === 'object') {
    if ('needs' in verdict) judgement.uses.push({ tool: verdict.needs, place });
    else judgement.never ??= verdict.never;
  }
  return verdict !== 'unknown';
}

/**
 * Judges a member of the body that is not one of `rules.members`. Returns true if the member may stay. Returns false if the caller must
 * remove the member: false if the member has no effect, `unknown` if the removal must be recorded.
 */
export function judgeMember(
  judgement: Judgement,
  rules: RequestRules,
  name: string,
  value: unknown,
): boolean | 'unknown' {
  const verdict = rules.reference(name, value);
  if (verdict === 'unknown') return 'unknown';
  if (typeof verdict === 'object' && isEmpty(value)) return false;
  return note(judgement, verdict, name);
}

/** The names of tool kinds come from the sandbox, so error messages include only short words. */
const kindOf = (tool: unknown): string => {
  const { type } = objectOf(tool) ?? {};
  return typeof type === 'string' && /^[A-Za-z0-9_.:-]{1,64}$/.test(type) ? type : 'tool';
};

/** Judges a tool and its nested tools. Returns false if the gateway does not know one of these tools. */
function judgeTool(judgement: Judgement, rules: RequestRules, tool: unknown, place: string): boolean {
  const isKnown = note(judgement, rules.tool(tool), place);
  const inner = objectOf(tool)?.tools;
  return isKnown && (!Array.isArray(inner) || inner.every((each) => judgeTool(judgement, rules, each, place)));
}

/** Judges a list of tools. Returns the tools that may stay, and the kinds of the removed tools. */
export function judgeTools(
  judgement: Judgement,
  rules: RequestRules,
  tools: readonly unknown[],
): { readonly kept: readonly unknown[]; readonly removed: readonly string[] } {
  const kept: unknown[] = [];
  const removed: string[] = [];
  for (const tool of tools) {
    if (judgeTool(judgement, rules, tool, `tools (${kindOf(tool)})`)) kept.push(tool);
    else removed.push(`tools.${kindOf(tool)}`);
  }
  return { kept, removed };
}

/**
 * Notes the provider tools that the content of messages needs, for example for a URL or a stored file, each tool only once. Also judges
 * tools inside messages.
 */
export function judgeContent(judgement: Judgement, rules: RequestRules, value: unknown, place: string): void {
  if (Array.isArray(value)) {
    for (const each of value) judgeContent(judgement, rules, each, place);
    return;
  }
  const members = objectOf(value);
  if (members === undefined) return;
  for (const [name, inner] of Object.entries(members)) {
    const plain = plainName(name);
    const tool = rules.inContent(plain, inner, members);
    if (tool !== undefined && !judgement.uses.some((use) => use.tool === tool))
      judgement.uses.push({ tool, place: `${place} (${name})` });
    if (rules.free.has(plain)) continue;
    // A message can add tools. Do not judge their schemas as content, because the members of a schema may have any name.
    const tools =
      plain === 'tools' && Array.isArray(inner) ? inner : plain === 'tool' && objectOf(inner) ? [inner] : null;
    if (tools === null) judgeContent(judgement, rules, inner, place);
    else for (const each of tools) judgeTool(judgement, rules, each, `${place} (${kindOf(each)})`);
  }
}

/** Returns why a request is refused; undefined if the environment allows everything that the request needs. */
export function refusalOf(judgement: Judgement, allowed: readonly ProviderTool[]): string | undefined {
  if (judgement.never !== undefined)
    return `${judgement.never} is not available to runs: it would cost more than the model of the run, or hide its cost`;
  const denied = judgement.uses.find(({ tool }) => !allowed.includes(tool));
  return (
    denied &&
    `${denied.place}: not available to this run, because the model provider ${meaningOf(denied.tool)} outside of the sandbox. To allow this, add ${denied.tool} to provider_tools of the environment.`
  );
}
