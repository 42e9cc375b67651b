import { type Json, objectOf } from './json.ts';

/**
 * The rules of a provider about the tools of a request, and the text of its error. If one tool breaks a rule, the provider refuses the
 * whole request. Sources: developers.openai.com/api/docs/guides/function-calling, platform.claude.com/docs/en/agents-and-tools/tool-use,
 * ai.google.dev/api/caching#FunctionDeclaration, and the errors in github.com/makenotion/notion-mcp-server/issues/340 and
 * github.com/router-for-me/CLIProxyAPI/issues/5292.
 */
interface ToolRules {
  readonly name: RegExp;
  readonly refusedAtTop: readonly string[];
  readonly needsItems: boolean;
  readonly says: (at: number, name: string, fault: string) => string;
}

const rules = {
  anthropic: {
    name: /^[a-zA-Z0-9_-]{1,128}$/,
    refusedAtTop: ['anyOf', 'oneOf', 'allOf'],
    needsItems: false,
    says: (at, _, fault) => `tools.${at}.custom.input_schema: ${fault}`,
  },
  openai: {
    name: /^[a-zA-Z0-9_-]{1,64}$/,
    refusedAtTop: ['anyOf', 'oneOf', 'allOf', 'enum', 'not'],
    needsItems: true,
    says: (_, name, fault) => `Invalid schema for function '${name}': ${fault}`,
  },
  google: {
    name: /^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$/,
    refusedAtTop: ['anyOf', 'oneOf', 'allOf'],
    needsItems: true,
    says: (at, _, fault) => `* GenerateContentRequest.tools[0].function_declarations[${at}].parameters: ${fault}`,
  },
} as const satisfies Readonly<Record<string, ToolRules>>;

/** Returns the path of the first array without items, below `path`; undefined if there is none. */
function arrayWithoutItems(value: unknown, path: string): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const schema = value as Json;
  if (schema.type === 'array' && schema.items === undefined && schema.prefixItems === undefined) return path;
  for (const [name, part] of Object.entries(schema)) {
    const found = arrayWithoutItems(part, `${path}.${name}`);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Throws with the provider's error if the provider refuses one of the tools. `schema` is undefined for a tool of the provider itself. */
export function checkTools(
  provider: keyof typeof rules,
  tools: readonly { readonly name: string; readonly schema: unknown }[],
): void {
  const { name: allowedName, refusedAtTop, needsItems, says }: ToolRules = rules[provider];
  for (const [at, { name, schema }] of tools.entries()) {
    if (schema === undefined) continue;
    const top = objectOf(schema);
    if (!allowedName.test(name)) throw new Error(says(at, name, `the name does not match ${allowedName.source}`));
    if (top.type !== 'object') throw new Error(says(at, name, `schema must be of type "object", got "${top.type}"`));
    const refused = refusedAtTop.find((keyword) => top[keyword] !== undefined);
    if (refused !== undefined)
      throw new Error(says(at, name, `it does not support ${refusedAtTop.join(', ')} at the top level`));
    const bare = needsItems ? arrayWithoutItems(schema, 'properties') : undefined;
    if (bare !== undefined) throw new Error(says(at, name, `${bare}: array schema missing items`));
  }
}
