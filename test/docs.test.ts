/** Tests that the files, link targets and settings that the documentation names exist. */
import { existsSync, globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { settingsTable } from '@runyard/contract/settings/settings';
import { expect, test } from 'vitest';

const root = path.resolve(import.meta.dirname, '..');
const list = (pattern: string) => globSync(pattern, { cwd: root, exclude: (name) => name.includes('node_modules') });
const pages = list('{*.md,docs/**/*.md,bench/*.md}').sort();
const files = list('{*.*,{packages,test,bench,deploy,docs,bin,examples}/**/*.*}');

/**
 * Returns whether the file that a page names exists. The page can name the whole path or its last part. `*` matches a part of a name.
 */
function isThere(named: string): boolean {
  // These names are of files in users' repositories: skills, agents and automations.
  if (/(^|\/)SKILL\.md$|^agents\/[\w-]+\/agent\.md$|^automations\/[\w-]+\/automation\.md$/.test(named)) return true;
  const end = new RegExp(`(^|/)${named.replaceAll('.', '\\.').replaceAll('*', '[^/]*')}$`);
  return files.some((file) => end.test(file));
}

test('the lists of pages and of source files that these tests check are not empty', () => {
  expect(pages).toContain('docs/architecture.md');
  expect(files).toContain('packages/service/src/runs/executions/transitions/transition.ts');
});

test.each(pages)('every file and every folder that %s names exists', (page) => {
  const text = readFileSync(path.join(root, page), 'utf8');
  const named = [...text.matchAll(/`(\w[\w./*-]*\.(?:ts|js|css|sh|md))`/g)].map(([, name = '']) => name);
  expect(named.filter((name) => !isThere(name))).toEqual([]);
  const folders = [...text.matchAll(/`((?:packages|test|bench|docs)\/[\w/-]+)`/g)].map(([, name = '']) => name);
  expect(folders.filter((name) => !existsSync(path.join(root, name)))).toEqual([]);
});

test.each(pages)('the target of every link of %s exists', (page) => {
  const text = readFileSync(path.join(root, page), 'utf8');
  const links = [...text.matchAll(/\]\((?!https?:)([^)#\s]+)/g)].map(([, link = '']) => link);
  expect(links.filter((link) => !existsSync(path.resolve(root, path.dirname(page), link)))).toEqual([]);
});

test('a reader of docs/architecture.md opens at most 12 files to follow a walk', () => {
  const text = readFileSync(path.join(root, 'docs/architecture.md'), 'utf8');
  const walks = text.split('\n## ').find((section) => section.startsWith('Eight walks')) ?? '';
  const counts = [...walks.matchAll(/^\*\*(.*)\.\*\*\n([^*]*)/gm)].map(([, name, walk = '']) => {
    const named = [...walk.matchAll(/`([\w./-]+\.ts)`/g)].map(([, file = '']) => path.basename(file));
    return { name, opened: new Set(named).size };
  });
  expect(counts).toHaveLength(8);
  expect(counts.filter(({ opened }) => opened < 3 || opened > 12)).toEqual([]);
});

/** Variables that a worker gives to the agent. They are not settings of Runyard's programs. */
const agentVariables = ['workspace/run-folders.ts', 'harness/external.ts', 'results/prompt-text.ts'].flatMap((file) =>
  [
    ...readFileSync(path.join(root, 'packages/agent/src', file), 'utf8').matchAll(
      /env\.(RUNYARD_\w+)|(RUNYARD_\w+):|'(RUNYARD_\w+)'/g,
    ),
  ].map(([, read, taken, quoted]) => read ?? taken ?? quoted),
);

test.each(pages)('every setting that %s names exists', (page) => {
  const text = readFileSync(path.join(root, page), 'utf8');
  const named = [...text.matchAll(/\bRUNYARD_[A-Z_]*[A-Z]\b(?!_)/g)].map(([name]) => name);
  // A secret `NAME` can also be set by `NAME_FILE`, the path of a file with the value.
  const known = (name: string) => name.replace(/_FILE$/, '') in settingsTable || name in settingsTable;
  expect(named.filter((name) => !(known(name) || agentVariables.includes(name)))).toEqual([]);
});

test('every page and every source file that a comment names exists', () => {
  const named = files
    .filter((file) => /\.(ts|js|mjs|sql)$/.test(file))
    .flatMap((file) => {
      const comments = readFileSync(path.join(root, file), 'utf8').match(/^\s*(?:\/?\*|\/\/|--).*$/gm) ?? [];
      const names = [...comments.join('\n').matchAll(/[`(]([\w./-]+\.(?:md|ts|sql))[`)]/g)].map(
        ([, name = '']) => name,
      );
      return names.filter((name) => !isThere(name)).map((name) => `${file}: ${name}`);
    });
  expect(named).toEqual([]);
});
