import { hasOddSchema, isObject, providerSchema } from './tool-schema.ts';

/** Optional members of a tool, and whether a value has the type that MCP requires. Clients with a strict schema refuse the whole list. */
const optional: Readonly<Record<string, (value: unknown) => boolean>> = {
  title: (value) => typeof value === 'string',
  description: (value) => typeof value === 'string',
  annotations: isObject,
  icons: Array.isArray,
  execution: isObject,
  _meta: isObject,
  outputSchema: (value) => isObject(value) && value.type === 'object',
};

const isNamed = (tool: unknown): tool is Readonly<Record<string, unknown>> & { readonly name: string } =>
  isObject(tool) && typeof tool.name === 'string' && tool.name !== '';

const oddMembers = (tool: object): string[] =>
  Object.entries(tool).flatMap(([name, value]) => (optional[name]?.(value) === false ? [name] : []));

/** Returns whether a tool has a form for which clients refuse the whole list of tools, or for which providers refuse each request. */
export const isOdd = (tool: unknown): boolean =>
  !isNamed(tool) || oddMembers(tool).length > 0 || hasOddSchema(tool.inputSchema);

/** Returns the tools of a list in a form that strict clients and all model providers accept. Omits tools without a name. */
export function repairTools(tools: readonly unknown[]): readonly unknown[] {
  return tools.flatMap((tool): unknown[] => {
    if (!isNamed(tool)) return [];
    if (!isOdd(tool)) return [tool];
    const odd = oddMembers(tool);
    const kept = Object.fromEntries(Object.entries(tool).filter(([name]) => !odd.includes(name)));
    const { schema, note } = providerSchema(tool.inputSchema);
    const description = [kept.description, note].filter((part) => part !== undefined).join('\n');
    return [{ ...kept, ...(description === '' ? {} : { description }), inputSchema: schema }];
  });
}

/** Returns the answer to a request `tools/list` with repaired tools. Returns other messages as they are. */
export function repairAnswer(message: unknown): unknown {
  if (!isObject(message) || !isObject(message.result)) return message;
  const { tools } = message.result;
  return Array.isArray(tools) ? { ...message, result: { ...message.result, tools: repairTools(tools) } } : message;
}
