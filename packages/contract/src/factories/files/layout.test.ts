import { expect, test } from 'vitest';
import { isPlainPath } from './layout.ts';

test.each([
  'factory.yaml',
  'agents/main/agent.md',
  'automations/on-push/automation.md',
  'skills/review/SKILL.md',
  'skills/review/LICENSE',
  'skills/review/scripts/check.py',
  'agents/main/skills/review/reference files/api (v2).json',
])('an export writes the file %s', (path) => expect(isPlainPath(path)).toBe(true));

test.each([
  'skills/s/HEAD',
  'skills/s/config',
  'skills/s/objects/info/alternates',
  'skills/s/refs/heads/main',
  'skills/s/hooks/post-checkout',
  'skills/s/.git/config',
  'skills/s/.envrc',
  'skills/s/.vscode/tasks.json',
  'skills/s/.github/workflows/a.yml',
  'skills/s/x.git/config.md',
  'skills/s/AGENTS.md',
  'skills/s/claude.md',
  'skills/s/CLAUDE.local.md',
  'skills/s/QWEN.md',
  'skills/s/opencode.json',
  'skills/s/mise.local.toml',
  'skills/s/package.json',
  'skills/s/node_modules/a/index.js',
  'skills/s/a.code-workspace',
  'skills/s/-rf.md',
  'skills/s/a\u202e.md',
])('an export does not write the file %s', (path) => expect(isPlainPath(path)).toBe(false));
