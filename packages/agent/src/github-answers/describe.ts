import { type GithubToolName, githubTools } from '@runyard/contract/environments/github-tools';
import { z } from 'zod';

const isTool = (name: string): name is GithubToolName => Object.hasOwn(githubTools, name);

/** Returns the JSON Schema of an input. Schemas with names are put in their places, because some models accept no references. */
function schemaOf(input: z.ZodType): Readonly<Record<string, unknown>> {
  const { $schema: _, $defs = {}, ...root } = z.toJSONSchema(input, { io: 'input' });
  const inline = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(inline);
    if (typeof value !== 'object' || value === null) return value;
    const { $ref, id: __, ...members } = value as Record<string, unknown>;
    const named = typeof $ref === 'string' ? ($defs[$ref.replace('#/$defs/', '')] ?? {}) : {};
    return Object.fromEntries(Object.entries({ ...named, ...members }).map(([name, each]) => [name, inline(each)]));
  };
  return inline(root) as Readonly<Record<string, unknown>>;
}

/** Returns how MCP describes these tools. Leaves out names of other tools. */
export const describeGithubTools = (names: readonly string[]) =>
  names.filter(isTool).map((name) => {
    const { does, input } = githubTools[name];
    const description = `${does} It appears on GitHub under the name of the App.`;
    return { name, title: name.replaceAll('_', ' '), description, inputSchema: schemaOf(input) };
  });
