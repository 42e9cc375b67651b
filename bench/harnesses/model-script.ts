import type { FakeConversation, FakeToolCall, FakeTurn } from '../../test/fakes/models.ts';

/** A step of the fake model: a shell command, a file to write, or a call of another tool of the program, with the name of this tool. */
export type Step =
  | { readonly shell: string }
  | { readonly write: string; readonly text: string }
  | { readonly tool: string; readonly input: Readonly<Record<string, unknown>> };

const mark = 'Steps: ';

/** Returns a prompt that contains the steps. With this prompt, the fake model takes one step in each answer. */
export const promptOf = (...steps: readonly Step[]): string => `Work on this.\n${mark}${JSON.stringify(steps)}`;

/** Returns the steps in a prompt. Programs add their own text to the prompt, even on the line with the steps. */
function stepsOf(prompt: string): readonly Step[] {
  const line = prompt.split('\n').findLast((each) => each.startsWith(mark));
  if (line === undefined) return [];
  for (let end = line.lastIndexOf(']'); end > 0; end = line.lastIndexOf(']', end - 1)) {
    try {
      return JSON.parse(line.slice(mark.length, end + 1));
    } catch {
      // This bracket is in text that the program added, so try the bracket before it.
    }
  }
  throw new Error(`there are no steps in ${line.slice(0, 200)}`);
}

/** The programs' shell tools. Each function returns the tool's arguments for a command. */
const shells: Readonly<Record<string, (command: string) => Record<string, unknown>>> = {
  Bash: (command) => ({ command, description: 'Runs a command' }),
  // Without `yield_time_ms`, Codex waits 10 s for a command and then asks the model again. 30 s is the longest wait that Codex allows.
  exec_command: (cmd) => ({ cmd, yield_time_ms: 30_000 }),
  shell_command: (command) => ({ command }),
  shell: (command) => ({ command }),
  bash: (command) => ({ command, description: 'Runs a command' }),
  run_shell_command: (command) => ({ command, description: 'Runs a command', is_background: false }),
};

/** The programs' tools that write a file. Each function returns the tool's arguments. */
const writers: Readonly<Record<string, (path: string, text: string) => Record<string, unknown>>> = {
  Write: (path, text) => ({ file_path: path, content: text }),
  write: (path, text) => ({ filePath: path, content: text }),
  write_file: (path, text) => ({ file_path: path, content: text }),
};

/** Codex offers new models one tool, which runs JavaScript. Its other tools are functions of this JavaScript. */
const codeTool = 'functions/exec';

const codeOf = (tool: string, input: object | string): FakeToolCall => ({
  name: codeTool,
  input: {},
  inputText: `const result = await tools.${tool}(${JSON.stringify(input)});\ntext(JSON.stringify(result));`,
});

function callOf(step: Step, offered: readonly string[]): FakeToolCall {
  const runsCode = offered.includes(codeTool);
  const find = (names: object) => offered.find((name) => Object.hasOwn(names, name)) ?? '';
  if ('shell' in step) {
    if (runsCode) return codeOf('exec_command', shells.exec_command?.(step.shell) ?? {});
    const name = find(shells);
    return { name, input: shells[name]?.(step.shell) ?? {} };
  }
  if ('write' in step) {
    if (runsCode) {
      const added = step.text.replace(/\n$/, '').replace(/^/gm, '+');
      return codeOf('apply_patch', `*** Begin Patch\n*** Add File: ${step.write}\n${added}\n*** End Patch`);
    }
    const name = find(writers);
    if (name === '') {
      const command = `cat > ${step.write} <<'END'\n${step.text}\nEND`;
      return callOf({ shell: command }, offered);
    }
    return { name, input: writers[name]?.(step.write, step.text) ?? {} };
  }
  if (runsCode) return codeOf(`mcp__everything__${step.tool}`, step.input);
  // A program may have the tool without offering it in this request. In this case, use the name that the tool has in that program.
  return {
    name: offered.find((name) => name.endsWith(step.tool)) ?? `mcp__everything__${step.tool}`,
    input: step.input,
  };
}

/** The fake model's answer: the next step of the last prompt, or, after the last step, a text with the results of the tools. */
export function takeSteps({ prompt, turnOfPrompt, toolNames, toolResults }: FakeConversation): FakeTurn {
  const step = stepsOf(prompt)[turnOfPrompt];
  const isMain = toolNames.some((name) => name === codeTool || Object.hasOwn(shells, name));
  if (step !== undefined && isMain) return { text: ['I take ', 'a step.'], toolCalls: [callOf(step, toolNames)] };
  const seen = toolResults.join('\n').slice(0, 300);
  return { text: ['All done. ', seen] };
}
