import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { eventually, isRunning } from '../test/agent.ts';
import { agent, ended, fake, of, sh, start } from '../test/run.ts';

describe('a runbook', () => {
  test('runs the blocks, reports everything in order and exits with 0', async () => {
    await start({ prompt: 'Please\n\n```sh\necho hello\n```\nand\n```bash\necho world >&2\n```\n' });
    await ended();
    expect(fake.events.filter((event) => event.type !== 'transcript').map((event) => event.type)).toEqual([
      'agent_started',
      'turn_started',
      'action',
      'action_output',
      'action_result',
      'action',
      'action_output',
      'action_result',
      'text',
      'turn_finished',
    ]);
    expect(of('agent_started')).toEqual([expect.objectContaining({ harness: 'oz', model_id: 'runbook' })]);
    expect(of('action')).toEqual([
      expect.objectContaining({ name: 'shell', category: 'command', input: { command: 'echo hello' } }),
      expect.objectContaining({ name: 'shell', category: 'command', input: { command: 'echo world >&2' } }),
    ]);
    expect(of('action_result').map((event) => [event.state, event.exit_code])).toEqual([
      ['completed', 0],
      ['completed', 0],
    ]);
    expect(fake.text()).toContain('Ran all 2 commands');
    expect(fake.text(), 'the model was chosen').not.toContain('language model');
    expect(fake.finished).toEqual([{ turn: 1, success: true, summary: expect.stringContaining('Ran all 2 commands') }]);
    expect(fake.shutdowns, 'the end of the turn says it').toEqual([]);
    expect(agent.stderr()).toBe('');
  });

  test('reports a command even if its line must be cut in the middle of an emoji', async () => {
    const command = `echo ${'x'.repeat(73)}\u{1F600}${'y'.repeat(20)}`;
    await start(sh(command));
    await ended();
    expect(fake.finished).toEqual([{ turn: 1, success: true, summary: expect.stringContaining('x…`: exit code 0') }]);
    expect(fake.text()).not.toContain('\uFFFD');
  });

  test('stops at the first failure and names the command', async () => {
    await start(sh('true', 'echo oops; exit 4', 'touch never'));
    await ended();
    expect(of('action_result').map((event) => [event.state, event.exit_code])).toEqual([
      ['completed', 0],
      ['failed', 4],
    ]);
    expect(fake.finished).toEqual([
      expect.objectContaining({
        success: false,
        error: { message: 'Command 2 exited with code 4: `echo oops; exit 4`' },
      }),
    ]);
    expect(existsSync(join(agent.workspace, 'never'))).toBe(false);
  });

  const failsAt = async (shell: string, script: string) => {
    await start({ prompt: `\`\`\`${shell}\n${script}\n\`\`\`` });
    await ended();
    return fake.finished[0]?.error?.message;
  };

  test.each([
    ['a command', 'sh', 'echo a\n\n# why\nls nowhere\necho never', 'code 2 at line 4: `ls nowhere`'],
    ['an exit', 'bash', 'echo a\nexit 9\necho never', 'code 9 at line 2: `exit 9`'],
    ['a function', 'sh', 'f() {\n  return 7\n}\necho a\nf', 'code 7 at line 5: `f`'],
    ['a pipeline', 'bash', 'echo a\nfalse |\n  cat', 'code 1 at line 2: `false |`'],
    [
      'a command behind a here-document',
      'sh',
      'cat >f <<E\necho x\n}\nE\n(exit 5)\necho b',
      'code 5 at line 5: `(exit 5)`',
    ],
    ['a compound command', 'sh', 'for i in 1 2; do\n  test $i = 1\ndone', 'code 1 at line 1: `for i in 1 2; do`'],
    ['a command of several lines', 'sh', 'true\nls \\\n  nowhere', 'code 2 at line 2: `ls \\`'],
  ])('names the line that failed and its exit code: %s', async (_name, shell, script, expected) => {
    expect(await failsAt(shell, script)).toBe(`Command 1 exited with ${expected}`);
    expect(fake.text(), 'the summary').toContain(`exit ${expected}`);
  });

  test('runs a block of many lines with the same effects as if a shell ran the block without the agent', async () => {
    const status =
      'set +e\nfalse\necho "status $?"\nset -e\nfalse && true\necho "still $?"\nx="a\nb"\necho "$x$LINENO"';
    await start({ prompt: `\`\`\`bash\n${status}\n\`\`\`\n\`\`\`bash\nset -x\ntrue\necho traced\n\`\`\`` });
    await ended();
    const [first = '', second = ''] = of('action').map(({ action_id }) => fake.output(action_id));
    expect(first).toBe('status 1\nstill 1\na\nb9\n');
    expect(second).toBe('+ true\n+ echo traced\ntraced\n');
    expect(fake.finished[0]?.success).toBe(true);
  });

  test('continues after a block with continue-on-error has failed', async () => {
    await start({ prompt: '```sh continue-on-error\nfalse\n```\n```sh\necho on\n```' });
    await ended();
    expect(of('action_result')).toHaveLength(2);
    expect(fake.finished[0]?.success).toBe(true);
  });

  test('runs nothing in the mode plan and lists the commands that it would run', async () => {
    await start({ ...sh('touch made', 'echo more'), mode: 'plan' });
    await ended();
    expect(of('action')).toEqual([]);
    expect(existsSync(join(agent.workspace, 'made'))).toBe(false);
    expect(fake.text()).toMatch(/nothing was run.*```sh\ntouch made\n```.*```sh\necho more\n```/s);
    expect(of('turn_started')[0]?.prompt, 'the record has the words of the person').not.toContain('Mode: plan');
    expect(fake.finished[0]?.success).toBe(true);
  });

  test('lists the MCP servers of the run, which it does not use', async () => {
    await start({ ...sh('true'), mcp_servers: [{ name: 'tools', command: 'tools-mcp' }] });
    await ended();
    expect(of('notice')).toEqual([
      expect.objectContaining({ name: 'mcp_server_skipped', data: expect.objectContaining({ name: 'tools' }) }),
    ]);
  });

  test('fails if the prompt has no command, and describes the expected form', async () => {
    await start({ prompt: 'Write me a poem.' });
    await ended();
    expect(fake.text()).toContain('```sh\nls -la\n```');
    const message = 'There was nothing to run: the prompt has no fenced `sh` or `bash` block';
    const error = { code: 'invalid_request', message: expect.stringContaining(message) };
    expect(fake.finished).toEqual([expect.objectContaining({ success: false, error })]);
    expect(fake.finished[0]?.error?.message).not.toMatch(/RUNYARD_|language model/);
  });

  test('that has succeeded also succeeds for a later message without a command', async () => {
    const message = { type: 'follow_up', id: 'f1', position: 1, message: 'And a poem.' } as const;
    await start(sh('true'), {
      prepare: (service) => {
        service.next = 'wait';
        service.tell(message);
      },
    });
    await fake.until(({ finished }) => finished.length === 2);
    fake.cancel();
    await ended();
    expect(fake.text()).toContain('The message has no such block, so the run stays SUCCEEDED.');
    expect(fake.finished.map(({ success }) => success)).toEqual([true, true]);
  });

  test.each([
    ['SUCCEEDED', true],
    ['FAILED', false],
  ] as const)('ends again as %s if a continued run gets a message without a command', async (state, success) => {
    await start({ prompt: 'Write me a poem.', ended_as: state });
    await ended();
    expect(fake.finished).toEqual([expect.objectContaining({ success })]);
  });

  const withoutModel = { harness: { type: 'oz', no_model_configured: true } } as const;
  const child = { parent_run: { run_id: 'parent', title: 'Parent' } };

  test('lists the three ways to add a model if no model is configured and there is nothing to run', async () => {
    await start({ prompt: 'Write me a poem.', ...withoutModel });
    await ended();
    const error = fake.finished[0]?.error;
    expect(error?.code).toBe('invalid_request');
    expect(error?.message).toMatch(
      /no language model is configured.*RUNYARD_OPENAI_API_KEY.*RUNYARD_MODEL_BASE_URL.*RUNYARD_GOOGLE_BASE_URL/s,
    );
  });

  test('explains how to add a model only once, and not again for each follow-up', async () => {
    const follow_up = (position: number) => ({ type: 'follow_up', id: `f${position}`, position }) as const;
    await start(
      { ...sh('true'), ...withoutModel },
      {
        prepare: (service) => {
          service.next = 'wait';
          service.tell({ ...follow_up(1), message: '```sh\necho again\n```' });
          service.tell({ ...follow_up(2), message: 'And a poem.' });
        },
      },
    );
    await fake.until(({ finished }) => finished.length === 3);
    fake.cancel();
    await ended();
    expect(fake.text().match(/No language model is configured/g)).toHaveLength(1);
    expect(fake.text().match(/RUNYARD_MODEL_BASE_URL/g)).toHaveLength(1);
    expect(fake.finished[2]).toEqual(expect.objectContaining({ success: true }));
  });

  test('does not explain how to add a model if another run started it, because that run explains it', async () => {
    await start({ ...sh('true'), ...withoutModel, ...child });
    await ended();
    expect(fake.text()).toContain('Ran 1 command');
    expect(fake.text()).not.toContain('language model');
  });

  test('uses limited memory and sends limited reports for an output of 200 MB', async () => {
    await start(sh('echo START; head -c 200000000 /dev/zero | tr "\\0" x; echo; echo END'));
    let peak = 0;
    const watch = setInterval(() => {
      try {
        const [, kb = '0'] = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${agent.child.pid}/status`, 'utf8')) ?? [];
        peak = Math.max(peak, Number(kb));
      } catch {
        // Gone.
      }
    }, 20);
    await ended();
    clearInterval(watch);
    const [result] = of('action_result');
    expect(result?.output_bytes).toBe(200_000_011);
    expect(result).not.toHaveProperty('output');
    const outputText = of('action_output')
      .map((event) => event.text)
      .join('');
    expect(outputText).toMatch(/^START\nxxx.*x…\n… 191 MB left out …\n…xxx.*\nEND\n$/s);
    expect(outputText.length).toBeLessThanOrEqual(64 * 1024);
    expect(peak).toBeGreaterThan(10_000);
    expect(peak).toBeLessThan(250_000);
  });

  test('reports output that is not UTF-8 or has NUL', async () => {
    await start(sh("printf 'a\\377b\\000c'"));
    await ended();
    expect(fake.output(of('action')[0]!.action_id)).toBe('a\uFFFDb\uFFFDc');
  });

  test('runs a block of more than 128 KB', async () => {
    await start(sh(`x='${'y'.repeat(200_000)}'\necho \${#x}`));
    await ended();
    expect(fake.output(of('action')[0]!.action_id)).toBe('200000\n');
  });

  test('keeps a background server running for the next block, and kills it after the run', async () => {
    await start(sh('sleep 600 & echo $! > pid', 'kill -0 $(cat pid) && echo alive'));
    await ended();
    expect(fake.finished[0]?.success).toBe(true);
    const pid = Number(readFileSync(join(agent.workspace, 'pid'), 'utf8'));
    await eventually(() => !isRunning(pid));
  });

  test('hides the run token and the relay from its processes: neither is in their environment, arguments or descriptors', async () => {
    const look = 'for p in self $PPID; do tr "\\0" "\\n" </proc/$p/environ; tr "\\0" " " </proc/$p/cmdline; done; env';
    const descriptors = 'for n in 3 4 5 6 7 8 9; do (timeout 5 cat <&$n) 2>&1 || echo "$n closed"; done';
    await start(sh(look, descriptors));
    await ended();
    const [first = '', second = ''] = of('action').map(({ action_id }) => fake.output(action_id));
    // Check that the command could read the agent's environment, because only this environment has a variable with this name.
    expect(first).toContain('RUNYARD_RUN_TOKEN_FD=4');
    expect(first).toContain('RUNYARD_AGENT_SOCKET=');
    expect(first).toContain('--task-id run-1');
    expect(first + second).not.toContain(fake.token);
    expect(first).not.toContain('RUNYARD_RELAY_SOCKET');
    expect(second).toMatch(/3 closed.*4 closed.*9 closed/s);
  });
});
