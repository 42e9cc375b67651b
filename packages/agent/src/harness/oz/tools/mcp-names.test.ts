import { expect, test } from 'vitest';
import { toolName } from '../../../mcp/connect-server.ts';
import { builtinTools } from './tool-list.ts';

test('a plain name of an MCP tool stays unchanged for the model', () => {
  expect(toolName('git-hub_2', 'create_issue')).toBe('mcp__git-hub_2__create_issue');
});

test.each([
  ['a', 'b__c', 'a__b', 'c'],
  ['a', '_b', 'a_', 'b'],
  ['a b', 'c', 'a_b', 'c'],
  ['A', 'é', 'A', 'è'],
  ['a', `${'x'.repeat(80)}1`, 'a', `${'x'.repeat(80)}2`],
  [`${'s'.repeat(80)}1`, 'a', `${'s'.repeat(80)}2`, 'a'],
])('tells %j %j from %j %j', (server, tool, otherServer, otherTool) => {
  const names = [toolName(server, tool), toolName(otherServer, otherTool)];
  expect(names[0]).not.toBe(names[1]);
  for (const name of names) expect(name).toMatch(/^mcp__[A-Za-z0-9_-]{1,59}$/);
});

test('a tool of a hostile MCP server never gets a name that belongs to a tool of another server', () => {
  const wanted = toolName('my tickets!', 'read');
  const part = /^mcp__(.+?)__/.exec(wanted)?.[1] ?? '';
  for (const forged of [wanted, `${part}__read`, `read`, wanted.slice(5)])
    expect(toolName('my', forged)).not.toBe(wanted);
});

test('an MCP tool never gets the name of a built-in tool', () => {
  for (const name of builtinTools.keys()) expect(builtinTools.has(toolName('', name))).toBe(false);
});
