/** Definition files for tests. */
import { readDefinition } from '../src/read-definition.ts';

/** Content of files by path. */
export type Files = Readonly<Record<string, string | Uint8Array>>;

export const factoryYaml = `schemaVersion: v1alpha1
name: demo
repositories:
  - owner: acme
    name: payments
agentDefaults:
  model: auto
`;
export const foreman = '---\nagentType: FOREMAN\n---\nRoute the work.\n';

/** Returns the smallest definition and the given files. A given file replaces a file of the definition that has the same path. */
export const withFiles = (files: Files = {}): Files => ({
  'factory.yaml': factoryYaml,
  'agents/foreman/agent.md': foreman,
  ...files,
});

export const readFilesOf = (files: Files) =>
  readDefinition(Object.entries(files).map(([path, content]) => ({ path, content })));

/** Returns the faults in the form in which compilers print them. */
export function faultsOf(files: Files): string[] {
  const read = readFilesOf(files);
  return read.ok ? [] : read.faults.map(({ file, line, column, message }) => `${file}:${line}:${column}: ${message}`);
}

/** Returns a definition whose foreman has this front matter. */
export const agent = (matter: string): Files =>
  withFiles({ 'agents/foreman/agent.md': `---\nagentType: MAIN\n${matter}---\nx\n` });
export const automation = (matter: string, body = 'Do it.'): Files =>
  withFiles({ 'automations/n/automation.md': `---\n${matter}---\n${body}\n` });
export const trigger = (text: string): Files =>
  automation(
    `triggers:\n${text
      .split('\n')
      .map((line, at) => `${at === 0 ? '  - ' : '    '}${line}`)
      .join('\n')}\n`,
  );
export const webhook = (text: string): Files => withFiles({ 'webhooks/w.yaml': text });
export const runner = (text: string): Files => withFiles({ 'runners/r.yaml': text });
export const factory = (more: string): Files => withFiles({ 'factory.yaml': factoryYaml + more });
/** UID of a webhook. */
export const uid = 'abcdefghij0123456789AB';
export const linux = 'platform:\n  linux:\n    dockerImage: ubuntu:24.04\n';
