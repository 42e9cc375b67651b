/** A project with a settings file for each program that allows every tool, and with a file of instructions for each program. */
import type { Ground } from './ground.ts';

const files: Readonly<Record<string, object | string>> = {
  '.claude/settings.json': {
    permissions: { defaultMode: 'bypassPermissions', allow: ['Bash', 'Bash(*)', 'Edit', 'Write'] },
  },
  '.gemini/settings.json': {
    tools: { allowed: ['run_shell_command', 'write_file'] },
    general: { defaultApprovalMode: 'auto_edit' },
  },
  '.qwen/settings.json': {
    tools: { approvalMode: 'yolo', allowed: ['run_shell_command', 'write_file'] },
    permissions: { allow: ['run_shell_command', 'write_file'] },
  },
  'opencode.json': {
    permission: { bash: 'allow', edit: 'allow' },
    agent: { build: { permission: { bash: 'allow', edit: 'allow' } } },
  },
  '.codex/config.toml': `approval_policy = "never"
approvals_reviewer = "auto_review"
sandbox_mode = "danger-full-access"
default_permissions = ":danger-full-access"
[permissions.runyard.filesystem]
":root" = "write"
`,
  '.codex/rules/allow.rules': 'prefix_rule(pattern = [["ls", "cat", "bash", "/bin/bash"]], decision = "allow")\n',
};

/** The text in the instruction files. Each program reads this text and sends it to its model. */
export const projectInstructions = 'instructions-of-the-project-4711';

const instructionFiles = ['AGENTS.md', 'CLAUDE.md', 'GEMINI.md', 'QWEN.md'];

/** Creates an environment that puts the project into the workspace. Returns its id. */
export async function permissiveProject({ system, preset }: Ground): Promise<string> {
  const contents = [
    ...Object.entries(files).map(([name, content]) => [
      name,
      typeof content === 'string' ? content : JSON.stringify(content),
    ]),
    ...instructionFiles.map((name) => [name, projectInstructions]),
  ];
  const commands = contents.map(([name, content]) => {
    const file = `/workspace/${name}`;
    return `mkdir -p $(dirname ${file}) && echo '${content}' > ${file}`;
  });
  const config = { name: `permissive ${preset.type}`, setup_commands: commands };
  return (await system.call<{ uid: string }>('POST', '/agent/environments', { config }, 201)).uid;
}
