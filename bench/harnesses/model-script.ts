import type { FakeConversation, FakeToolCall, FakeTurn } from '../../test/fakes/models.ts';

/** A step of the fake model. The name may be that of any tool of the program. */
export type Step =
  | { readonly shell: string }
  | { readonly write: string; readonly text: string }
  | { readonly tool: string; readonly input: Readonly<Record<string, unknown>> };

const mark = 'Steps: ';

/** Returns a prompt that makes the fake model take these steps, one in each answer. */
export const promptOf = (...steps: readonly Step[]): string => `Work on this.\n${mark}${JSON.stringify(steps)}`;

/** Returns the steps in a prompt. Programs add text of their own, even on the same line. */
function stepsOf(prompt: string): readonly Step[] {
  const line = prompt.split('\n').findLast((each) => each.startsWith(mark));
  if (line === undefined) return [];
  for (let end = line.lastIndexOf(']'); end > 0; end = line.lastIndexOf(']', end - 1)) {
    try {
      return JSON.parse(line.slice(mark.length, end + 1));
    } catch {
      // The bracket belongs to the text that the program adds.
    }
  }
  throw new Error(`there are no steps in ${line.slice(0, 200)}`);
}

/** Names of shell tools, each with the arguments for a command. */
const shells: Readonly<Record<string, (command: string) => Record<string, unknown>>> = {
  Bash: (command) => ({ command, description: 'Runs a command' }),
  // Codex interrupts the wait for a command after 10 s and sends a request to the model again; 30 s is the longest allowed wait.
  exec_command: (cmd) => ({ cmd, yield_time_ms: 30_000 }),
  shell_command: (command) => ({ command }),
  shell: (command) => ({ command: ['sh', '-c', command] }),
  bash: (command) => ({ command, description: 'Runs a command' }),
  run_shell_command: (command) => ({ command, description: 'Runs a command', is_background: false }),
};

/** Names of tools that write a file, each with its arguments. */
const writers: Readonly<Record<string, (path: string, text: string) => Record<string, unknown>>> = {
  Write: (path, text) => ({ file_path: path, content: text }),
  write: (path, text) => ({ filePath: path, content: text }),
  write_file: (path, text) => ({ file_path: path, content: text }),
};

function callOf(step: Step, offered: readonly string[]): FakeToolCall {
  const find = (names: object) => offered.find((name) => Object.hasOwn(names, name)) ?? '';
  if ('shell' in step) {
    const name = find(shells);
    return { name, input: shells[name]?.(step.shell) ?? {} };
  }
  if ('write' in step) {
    const name = find(writers);
    if (name === '') {
      const command = `cat > ${step.write} <<'END'\n${step.text}\nEND`;
      return callOf({ shell: command }, offered);
    }
    return { name, input: writers[name]?.(step.write, step.text) ?? {} };
  }
  // A program may offer the tool only on request, under another name.
  return {
    name: offered.find((name) => name.endsWith(step.tool)) ?? `mcp__everything__${step.tool}`,
    input: step.input,
  };
}

/** Takes the steps of the last prompt one after another, then repeats the results of the tools. */
export function takeSteps({ prompt, turnOfPrompt, toolNames, toolResults }: FakeConversation): FakeTurn {
  const step = stepsOf(prompt)[turnOfPrompt];
  const isMain = toolNames.some((name) => Object.hasOwn(shells, name));
  if (step !== undefined && isMain) return { text: ['I take ', 'a step.'], toolCalls: [callOf(step, toolNames)] };
  const seen = toolResults.join('\n').slice(0, 300);
  return { text: ['All done. ', seen] };
}
