import { spawnSync } from 'node:child_process';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { presetTypes } from '@runyard/contract/agent/harness-presets/preset';
import { installCommand, presets, variablesOfPreset } from '@runyard/contract/agent/harness-presets/presets';
import { describe, expect, test } from 'vitest';
import { writeHomeFile } from '../external.ts';
import { configureProgram, tomlOf } from './configure.ts';

const values = {
  forwarder: 'http://127.0.0.1:1',
  key: 'placeholder',
  model: 'a "model"\nname',
  folder: '/work',
  home: '/home',
};

describe.each(presetTypes)('the preset %s', (type) => {
  const preset = presets[type];
  const protocols = Object.keys(preset.speaks) as (keyof typeof preset.speaks)[];

  test.each(protocols)('sends all requests of %s to the forwarder, with the model of the run', (protocol) => {
    const { command, variables, files } = configureProgram(preset, protocol, 'auto-approve', values);
    const configurationText = JSON.stringify([command, variables, files]);
    expect(command[0]).toBe(preset.program.command);
    expect(configurationText).toContain('http://127.0.0.1:1/');
    expect(configurationText).toContain('placeholder');
    expect(configurationText).not.toMatch(/\{(forwarder|key|model|folder|home)\}/);
    expect(Object.keys(variables).filter((name) => !variablesOfPreset(preset).has(name))).toEqual([]);
    for (const [name, text] of Object.entries(files)) if (name.endsWith('.json')) JSON.parse(text);
  });

  test('a preset works with each approval policy, and names one version of the program', () => {
    for (const policy of ['ask', 'auto-deny'] as const)
      expect(configureProgram(preset, protocols[0] ?? 'anthropic', policy, values).command[0]).toBe(
        preset.program.command,
      );
    expect(installCommand(preset, '/usr/local')).toContain(`${preset.program.package}@${preset.program.version}`);
  });
});

test('the presets codex and qwen make their program wait for the MCP servers of the run before the first request to a model', () => {
  const { variables } = configureProgram(presets.qwen, 'openai-compatible', 'auto-approve', values);
  expect(variables).toMatchObject({ QWEN_CODE_LEGACY_MCP_BLOCKING: '1' });
  const { files } = configureProgram(presets.codex, 'openai-responses', 'auto-approve', values);
  expect(files['.codex/config.toml']?.split('[')[0]).toContain('mcp_optional_startup_grace_ms = 0\n');
});

test('under the policy ask, a preset asks a person even if the settings of the project allow every tool', () => {
  const asking = (type: keyof typeof presets) =>
    configureProgram(presets[type], type === 'gemini' ? 'google' : 'openai-compatible', 'ask', values);
  expect(asking('gemini').command.join(' ')).toContain('--approval-mode default --allowed-tools none');
  expect(asking('qwen').command.join(' ')).toContain('--approval-mode default');
  expect(asking('qwen').files['.qwen/settings.json']).toContain('"write_file"');
  expect(asking('opencode').variables).toMatchObject({
    OPENCODE_DISABLE_PROJECT_CONFIG: '1',
    // The configuration must name AGENTS.md, because OpenCode does not look for this file when the configuration of the project is switched
    // off.
    OPENCODE_CONFIG_CONTENT: expect.stringContaining('"instructions":["/work/AGENTS.md"]'),
  });
});

test('under the policy ask, Codex has a profile that lets it do nothing without a question, and the settings for its models', () => {
  const { files, variables, programs } = configureProgram(presets.codex, 'openai-responses', 'ask', values);
  expect(variables).toMatchObject({
    INITIAL_AGENT_MODE: 'permission-profile:runyard',
    CODEX_PATH: '/home/.codex/asks/codex',
  });
  const settings = files['.codex/config.toml'];
  for (const text of ['"runyard"\n', '[approval_policy.granular]\n', '[projects."/work"]\ntrust_level = "untrusted"\n'])
    expect(settings).toContain(text);
  expect(settings).toContain('[permissions.runyard.filesystem]\n":root" = "read"\n');
  expect(settings).toMatch(/^developer_instructions = "Run commands and change files/m);
  expect(programs).toEqual(['.codex/asks']);
  expect(
    configureProgram(presets.codex, 'openai-responses', 'auto-approve', values).files['.codex/config.toml'],
  ).not.toContain('permissions');
});

test('the stand-in for bubblewrap names the options that Codex needs, and starts nothing', () => {
  const home = mkdtempSync(path.join(tmpdir(), 'runyard-home-'));
  const { files } = configureProgram(presets.codex, 'openai-responses', 'ask', values);
  writeHomeFile(home, 'bwrap', files['.codex/asks/bwrap'] ?? '');
  const run = (...args: string[]) => spawnSync(path.join(home, 'bwrap'), args, { encoding: 'utf8' });
  for (const option of ['--argv0', '--perms', '--ro-bind-fd', '--as-pid-1'])
    expect(run('--help').stdout).toContain(option);
  expect(run('--ro-bind', '/', '/', '--', 'touch', path.join(home, 'made'))).toMatchObject({
    status: 1,
    stderr: 'bwrap: Operation not permitted\n',
  });
  expect(existsSync(path.join(home, 'made'))).toBe(false);
});

test("Codex gets the adapter's messages without trust in the project, and the project's AGENTS.md as the user's", () => {
  const home = mkdtempSync(path.join(tmpdir(), 'runyard-home-'));
  const project = mkdtempSync(path.join(tmpdir(), 'runyard-project-'));
  writeFileSync(path.join(project, 'AGENTS.md'), 'instructions');
  const { files } = configureProgram(presets.codex, 'openai-responses', 'ask', values);
  writeHomeFile(home, '.codex/asks/codex', files['.codex/asks/codex'] ?? '');
  const adapter = path.join(home, 'lib/node_modules/codex-acp');
  const program = path.join(adapter, 'node_modules/@openai/codex/bin/codex.js');
  mkdirSync(path.dirname(program), { recursive: true });
  writeFileSync(program, 'console.log(process.argv.slice(2).join()); process.stdin.pipe(process.stdout);');
  writeFileSync(
    path.join(adapter, 'index.js'),
    "require('child_process').spawn(process.env.CODEX_PATH, ['app-server'], { stdio: 'inherit' })",
  );
  symlinkSync(path.join(adapter, 'index.js'), path.join(home, 'codex-acp'));
  const message = { config: { projects: { '/work': { trust_level: 'trusted' } } }, text: '"trust_level":"trusted"' };
  const { stdout } = spawnSync(process.execPath, [path.join(home, 'codex-acp')], {
    cwd: project,
    env: { ...process.env, HOME: home, CODEX_PATH: path.join(home, '.codex/asks/codex') },
    input: `${JSON.stringify(message)}\n`,
    encoding: 'utf8',
  });
  const [args, received = ''] = stdout.split('\n');
  expect(args).toBe('app-server');
  expect(JSON.parse(received)).toEqual({
    ...message,
    config: { projects: { '/work': { trust_level: 'untrusted' } } },
  });
  expect(readFileSync(path.join(home, '.codex/AGENTS.md'), 'utf8')).toBe('instructions');
});

test('under the policy auto-approve, each preset sets the mode of its program that runs every tool without a question', () => {
  const approving = (type: keyof typeof presets) => {
    const protocol = Object.keys(presets[type].speaks)[0] as 'anthropic';
    return configureProgram(presets[type], protocol, 'auto-approve', values);
  };
  const claude = approving('claude');
  expect(claude.variables).toMatchObject({ IS_SANDBOX: '1' });
  expect(JSON.parse(claude.files['.claude/settings.json'] ?? '')).toEqual({
    permissions: { defaultMode: 'bypassPermissions', disableAutoMode: 'disable' },
  });
  expect(approving('codex').variables).toMatchObject({ INITIAL_AGENT_MODE: 'agent-full-access' });
  expect(approving('gemini').command.join(' ')).toContain('--approval-mode yolo');
  expect(approving('qwen').command.join(' ')).toContain('--approval-mode yolo');
  expect(JSON.parse(approving('opencode').files['.config/opencode/config.json'] ?? '')).toEqual({
    permission: { '*': 'allow' },
  });
});

test('a settings file keeps the members that a setup command has written, and does not read through a link', () => {
  const home = mkdtempSync(path.join(tmpdir(), 'runyard-home-'));
  const file = path.join(home, '.claude/settings.json');
  const own = '{"permissions":{"defaultMode":"bypassPermissions"}}';
  const written = () => JSON.parse(readFileSync(file, 'utf8'));
  mkdirSync(path.dirname(file));
  writeFileSync(file, '{"hooks":{"Stop":[]},"permissions":{"deny":["WebFetch"],"defaultMode":"plan"}}');
  writeHomeFile(home, '.claude/settings.json', own, true);
  expect(written()).toEqual({
    hooks: { Stop: [] },
    permissions: { deny: ['WebFetch'], defaultMode: 'bypassPermissions' },
  });
  writeFileSync(file, 'not JSON');
  writeHomeFile(home, '.claude/settings.json', own, true);
  expect(written()).toEqual(JSON.parse(own));
  const outside = path.join(mkdtempSync(path.join(tmpdir(), 'runyard-outside-')), 'a.json');
  writeFileSync(outside, '{"a":1}');
  rmSync(file);
  symlinkSync(outside, file);
  writeHomeFile(home, '.claude/settings.json', own, true);
  expect(written()).toEqual(JSON.parse(own));
});

test('a text with quotes or line breaks cannot end a string of the written TOML early', () => {
  const text = tomlOf({ model: 'a"b\n[x]', on: false, tables: { 'a b': { url: 'u', count: 1 } } });
  expect(text).toBe('model = "a\\"b\\n[x]"\non = false\n\n[tables."a b"]\nurl = "u"\ncount = 1\n');
});

test('a configuration file in the home folder replaces a symbolic link at its path', () => {
  const home = mkdtempSync(path.join(tmpdir(), 'runyard-home-'));
  const outside = mkdtempSync(path.join(tmpdir(), 'runyard-outside-'));
  writeFileSync(path.join(outside, 'kept'), 'kept');
  symlinkSync(outside, path.join(home, '.codex'));
  writeHomeFile(home, '.codex/config.toml', 'a');
  expect(existsSync(path.join(outside, 'config.toml'))).toBe(false);
  mkdirSync(path.join(home, '.qwen'));
  symlinkSync(path.join(outside, 'kept'), path.join(home, '.qwen/settings.json'));
  writeHomeFile(home, '.qwen/settings.json', 'b');
  expect(readFileSync(path.join(outside, 'kept'), 'utf8')).toBe('kept');
  expect(lstatSync(path.join(home, '.qwen/settings.json')).mode & 0o777).toBe(0o600);
});
