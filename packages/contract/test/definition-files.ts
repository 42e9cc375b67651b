/** Definition files for tests. */
import { readDefinition } from '../src/factory-files/read-definition.ts';

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

/** The smallest definition, with these files besides or instead. */
export const withFiles = (files: Files = {}): Files => ({
  'factory.yaml': factoryYaml,
  'agents/foreman/agent.md': foreman,
  ...files,
});

export const readFilesOf = (files: Files) =>
  readDefinition(Object.entries(files).map(([path, content]) => ({ path, content })));

/** The faults as a compiler prints them. */
export function faultsOf(files: Files): string[] {
  const read = readFilesOf(files);
  return read.ok ? [] : read.faults.map(({ file, line, column, message }) => `${file}:${line}:${column}: ${message}`);
}
