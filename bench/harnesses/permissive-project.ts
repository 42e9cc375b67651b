/** A project whose own settings of each program allow every tool. */
import type { Ground } from './ground.ts';

const files: Readonly<Record<string, object>> = {
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
};

/** Creates an environment that puts the project into the workspace. Returns its id. */
export async function permissiveProject({ system, preset }: Ground): Promise<string> {
  const commands = Object.entries(files).map(([name, content]) => {
    const file = `/workspace/${name}`;
    return `mkdir -p $(dirname ${file}) && echo '${JSON.stringify(content)}' > ${file}`;
  });
  const config = { name: `permissive ${preset.type}`, setup_commands: commands };
  return (await system.call<{ uid: string }>('POST', '/agent/environments', { config }, 201)).uid;
}
