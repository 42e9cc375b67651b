import type { Context } from '../context.ts';
import { findOnPath } from '../sandbox-tool.ts';
import type { Finding } from './finding.ts';

const others = ['claude', 'codex', 'gemini', 'opencode'] as const;

/** Reports the built-in harness, and which other harnesses are installed, although Runyard does not drive them yet. */
export function checkHarnesses(context: Context): Finding[] {
  const found = others.filter((command) => findOnPath(command, context.env.PATH) !== null);
  const missing = others.filter((command) => !found.includes(command));
  const details = [
    found.length > 0 ? `${found.join(', ')} found on PATH` : '',
    missing.length > 0 ? `${missing.join(', ')} not found` : '',
  ].filter(Boolean);
  return [
    { name: 'harness oz', level: 'good', detail: 'built in' },
    {
      name: 'other harnesses',
      level: 'fact',
      detail: `${details.join('; ')}. Runyard does not drive these yet: it runs \`oz\` and ACP agents that you name (harness \`acp\`)`,
    },
  ];
}
