import { parseUntrusted } from '@runyard/contract/wire/parse-untrusted';
import { plainMessage } from '@runyard/contract/wire/plain-message';
import type { BuiltinTool } from './tool.ts';

/**
 * Returns the reasons why a tool does not accept this input, as sentences for the model and for people who read the conversation.
 * Returns undefined if the schema accepts the input, or the tool belongs to an MCP server, which has its own schema. If the model's
 * input was not JSON, `input` is the text that the model wrote.
 */
export function inputFault({ name, schema, inputSchema }: BuiltinTool, input: unknown): string | undefined {
  if (typeof input === 'string') return `The input of ${name} is not a JSON object. It may have been cut off.`;
  if (inputSchema !== undefined) return undefined;
  const checked = parseUntrusted(schema, input, { error: plainMessage });
  if (checked.success) return undefined;
  const faults = checked.error.issues.map(({ path, message }) => `${path.map(String).join('.') || 'it'} ${message}`);
  return `The input of ${name} is not accepted: ${faults.join('; ')}.`;
}
